"""Trainings that are cut short, to forecast how long they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from statistics import median

import torch
from torch import Tensor

from attar.core.forecast import lap

BUDGET = 1.0  #: seconds of steps that the trainings of a rehearsal take together, before steps are only counted
LEAST = 3  #: steps that each training takes at least; the first includes one-time set-up


class Rehearsal:
    """What the trainings within it take in full, and what they took."""

    def __init__(self, brief: bool) -> None:
        self.brief, self.paces = brief, list[Pace]()

    @property
    def taken(self) -> float:
        """Seconds of the steps that were taken."""
        return sum(sum(pace.times) for pace in self.paces)

    @property
    def seconds(self) -> float:
        """Seconds of all steps, each as long as the median of those taken, without the first."""
        return sum(pace.steps * median(pace.times[1:] or pace.times) for pace in self.paces if pace.times)


_NOW: ContextVar[Rehearsal | None] = ContextVar("rehearsal", default=None)


@contextmanager
def rehearsal(brief: bool = False) -> Iterator[Rehearsal]:
    """Within this block, trainings take their first steps and count the others; if ``brief``, take one step each."""
    made = Rehearsal(brief)
    token = _NOW.set(made)
    try:
        yield made
    finally:
        _NOW.reset(token)


class Pace:
    """The steps of one training within a rehearsal: the first ones are taken and timed, the others counted."""

    def __init__(self, within: Rehearsal, device: torch.device) -> None:
        self.within, self.device = within, device
        self.steps, self.times, self.last = 0, list[float](), torch.empty(0)
        within.paces.append(self)

    @classmethod
    def here(cls, device: torch.device) -> Pace | None:
        """The pace of a new training, or None outside of a rehearsal."""
        within = _NOW.get()
        return None if within is None else cls(within, device)

    def step(self, take: Callable[[], Tensor]) -> Tensor:
        """Take a step or count it; returns the losses of the last one that was taken."""
        if self.steps < 1 or not (self.within.brief or (self.steps >= LEAST and self.within.taken >= BUDGET)):
            with lap(self.device) as timed:
                self.last = take()
            self.times.append(timed.seconds)
        self.steps += 1
        return self.last
