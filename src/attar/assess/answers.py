"""The test examples that a posterior answers worst, and those of which it is least certain."""

from __future__ import annotations

import torch
from pydantic.dataclasses import dataclass
from torch import Tensor

from attar.assess.metrics import STRICT, check, entropy

KEPT = 12  #: examples of each kind
CLASSES = 3  #: most likely classes told of each


@dataclass(frozen=True, config=STRICT)
class Answer:
    """How one example was answered."""

    place: int  #: its position in the set
    label: int
    chances: list[tuple[int, float]]  #: classes and their probabilities, most likely first; the true one is among them


@dataclass(frozen=True, config=STRICT)
class Answers:
    """Some examples of a set."""

    worst: list[Answer]  #: the lowest probability of the true class
    uncertain: list[Answer]  #: the highest entropy


def answers(probabilities: Tensor, y: Tensor, count: int = KEPT) -> Answers:
    """The ``count`` worst and most uncertain answers, from probabilities ``(n, classes)`` and true labels ``(n,)``."""
    p = check(probabilities, y)
    right = p.gather(1, y[:, None]).flatten()
    return Answers(*([_answer(p, y, i) for i in _first(by, count)] for by in (right, -entropy(p))))


def _first(by: Tensor, count: int) -> list[int]:
    places: list[int] = torch.argsort(by, stable=True)[:count].tolist()
    return places


def _answer(p: Tensor, y: Tensor, i: int) -> Answer:
    order, label = torch.argsort(p[i], descending=True, stable=True).tolist(), int(y[i])
    told = order[:CLASSES] if label in order[:CLASSES] else [*order[:CLASSES], label]
    return Answer(i, label, [(c, round(float(p[i, c]), 4)) for c in told])
