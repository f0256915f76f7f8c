"""Greedy maximisation of set functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

FEW, MANY = 32, 256  # stale candidates that are evaluated together, at first and at most


class Objective(Protocol):
    """A set function that is maximised one example at a time."""

    def __len__(self) -> int:
        """Number of candidates."""

    def gain(self, candidates: Tensor) -> Tensor:
        """The gain of each candidate, ``(len(candidates),)``, whatever the other candidates are."""

    def add(self, i: int) -> None:
        """Add one example to the set."""


class Picks(NamedTuple):
    """Picks in order, so that a smaller budget is a prefix."""

    indices: Tensor  #: (size,) int64
    gains: Tensor  #: (size,) float64


def naive(objective: Objective, size: int) -> Picks:
    """Evaluate every candidate for every pick; ties go to the lowest index."""
    return in_rounds(objective, torch.zeros(len(objective), dtype=torch.int64), [min(size, len(objective))])


def in_rounds(objective: Objective, groups: Tensor, sizes: Sequence[int]) -> Picks:
    """The same with ``sizes[c]`` picks of each group c: every round takes one of each group that lacks some.

    So a smaller budget for every group is a prefix of the picks in each.
    """
    everything, groups = torch.arange(len(objective)), groups.cpu()
    free = torch.ones(len(objective), dtype=torch.bool)
    picks = _Taken(objective)
    for number in range(max(sizes)):
        open_ = torch.tensor([number < size for size in sizes])
        while bool(open_.any()):
            gains = objective.gain(everything).cpu().double().masked_fill(~(free & open_[groups]), -torch.inf)
            best = int(gains.argmax())
            free[best] = open_[groups[best]] = False
            picks.take(best, float(gains[best]))
    return picks.done()


def lazy(objective: Objective, size: int) -> Picks:
    """The picks of ``naive``, for submodular objectives, with few gains evaluated again.

    Gains never grow, so an old gain is an upper bound of the current one: the candidate with the highest bound is the
    best as soon as its bound is current (Minoux 1978). Bounds are updated a few at a time, the highest first.
    """
    bounds = objective.gain(torch.arange(len(objective))).cpu().double()
    picks = _Taken(objective)
    fresh, taken = torch.ones(len(objective), dtype=torch.bool), torch.zeros(len(objective), dtype=torch.bool)
    for _ in range(min(size, len(objective))):
        best, few = int(bounds.argmax()), FEW
        while not fresh[best]:
            promising = bounds.topk(min(few, len(bounds))).indices
            stale = promising[~fresh[promising]]
            stale = stale if len(stale) else torch.tensor([best])  # it may tie with current ones that come first
            bounds[stale] = objective.gain(stale).cpu().double()
            fresh[stale] = True
            best, few = int(bounds.argmax()), min(2 * few, MANY)
        picks.take(best, float(bounds[best]))
        bounds[best] = -torch.inf
        taken[best] = True
        fresh = taken.clone()  # picks are not evaluated again
    return picks.done()


class _Taken:
    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.indices: list[int] = []
        self.gains: list[float] = []

    def take(self, i: int, gain: float) -> None:
        self.objective.add(i)
        self.indices.append(i)
        self.gains.append(gain)

    def done(self) -> Picks:
        return Picks(torch.tensor(self.indices, dtype=torch.int64), torch.tensor(self.gains, dtype=torch.float64))
