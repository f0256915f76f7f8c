"""Text dataset distillation."""

from __future__ import annotations

from typing import ClassVar

from pydantic.dataclasses import dataclass

from attar.condense.contract import Descent
from attar.condense.sldd import SLDD
from attar.core.registry import condenser


@condenser(
    "tdd",
    about="sldd on texts",
    choose="texts, fixed start",
    takes="20 min",
    paper="Sucholutsky & Schonlau, Soft-Label Dataset Distillation and Text Dataset Distillation, IJCNN 2021",
    learns="word embeddings, soft labels and the learning rate of every step",
    cost="as dd",
)
@dataclass(frozen=True)
class TDD(SLDD):
    """Learn the embeddings of every word of a few sentences, their soft labels and the learning rates.

    It is ``sldd`` in the space of word embeddings, where texts can be differentiated, from random sentences on.
    ``Coreset.texts`` decodes learnt embeddings to the nearest words.
    """

    descent: ClassVar[Descent] = Descent(
        steps=1000, optimiser="adam", lr=0.1, label_lr=0.05, scalar_lr=0.05, schedule="cosine", init="real", clip=10.0
    )
