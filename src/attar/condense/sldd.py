"""Soft-label dataset distillation."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.contract import Descent, Source
from attar.condense.dd import DD
from attar.condense.source import Labels
from attar.core.registry import condenser
from attar.data import Data
from attar.data.data import soft


@condenser(
    "sldd",
    about="dd with learnt soft labels",
    choose="fixed start",
    takes="20 min",
    paper="Sucholutsky & Schonlau, Soft-Label Dataset Distillation and Text Dataset Distillation, IJCNN 2021",
    learns="pixels, soft labels and the learning rate of every step",
    cost="as dd",
)
@dataclass(frozen=True)
class SLDD(DD):
    r"""Learn examples, their soft labels and learning rates with which a few gradient steps train a network.

    .. math:: \min_{S, Y, \eta} \; E_{\theta_0} \; L(T; \theta_N), \quad
        \theta_{s+1} = \theta_s - \eta_s \nabla L(S_s, Y_s; \theta_s), \quad Y = \mathrm{softmax}(Z)
    """

    label_start: Literal["one-hot", "uniform", "similarity"] = Field(
        default="one-hot",
        description="initial labels: one-hot (nearly), uniform, or by similarity of the classes' mean initial examples",
    )

    descent: ClassVar[Descent] = Descent(
        steps=1000,
        optimiser="adam",
        lr=0.1,
        label_lr=0.05,
        scalar_lr=0.05,
        schedule="cosine",
        init="noise",
        clip=10.0,
    )
    labels: ClassVar[Labels] = "soft"

    def source(self, start: Data, gen: Generator) -> Source:
        """As for dd, from these labels."""
        return super().source(replace(start, y=self._first(start)), gen)

    def _first(self, data: Data) -> Tensor:
        """Probabilities of the classes, ``(n, classes)``."""
        if self.label_start == "one-hot":
            return soft(data.y, data.classes)
        if self.label_start == "uniform":
            return torch.full((len(data), data.classes), 1 / data.classes, device=data.device)
        means = torch.stack([data.x[data.hard == c].flatten(1).mean(0) for c in range(data.classes)])
        apart = torch.cdist(means, means).square()
        return (-apart / apart.mean()).softmax(1)[data.hard]
