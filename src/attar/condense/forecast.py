"""How long a condensation will take, by rehearsing a few of its steps."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from statistics import median
from typing import NamedTuple

import torch

from attar.condense.driver import Condensation
from attar.core.forecast import ENOUGH, LONG, Order, Point, extrapolated, lap, spread
from attar.data import Data
from attar.nets.rehearsal import rehearsal

ROWS = 64  #: examples of a class in a rehearsal at least


class Timed(NamedTuple):
    """Seconds of the set-up and of a step, and what timing them took."""

    setup: float
    step: float
    spent: float


def seconds(begin: Callable[[Data], Condensation], order: Order, data: Data, each: int, steps: int) -> float:
    r"""Seconds of a condensation on this machine.

    .. math:: T = T_{\text{set-up}} + \text{steps} \cdot T_{\text{step}}

    Steps are timed on all the data; where their time grows with it, on parts of it. Nothing is changed or kept.

    Args:
        begin: Makes the condensation for some data.
        order: How the time of its steps grows.
        data: All the data.
        each: Examples of a class that it starts from.
        steps: All its steps.
    """
    if not order.rows:
        found = _timed(begin, data, steps)
        return found.setup + steps * found.step
    groups = [(data.hard == c).nonzero().flatten() for c in range(data.classes)]

    def rehearse(share: float) -> Point:
        few = [spread(group, max(ceil(share * len(group)), 2 * each)) for group in groups]
        some = data[torch.cat(few).sort().values]
        found = _timed(begin, some, steps)
        return Point(order.work(len(some)), found.setup / steps + found.step, found.spent)

    first = min(1.0, ROWS * data.classes / len(data))
    return steps * extrapolated(rehearse, first, order.work(len(data)))


def _timed(begin: Callable[[Data], Condensation], data: Data, steps: int) -> Timed:
    """Time the set-up, and steps until they take long enough; the first of both includes what is done once only."""
    setups, times, spent = list[float](), list[float](), 0.0
    while not setups or (len(setups) < 2 and spent < LONG):
        with rehearsal(brief=bool(setups)) as trained, lap(data.device) as setup:
            condensation = begin(data)
        setups.append(setup.seconds - trained.taken + trained.seconds)
        spent += setup.seconds
    while not times or (len(times) < steps and sum(times[1:]) < ENOUGH):
        with lap(data.device) as step:
            condensation.step()
        times.append(step.seconds)
    return Timed(min(setups), median(times[1:] or times), spent + sum(times))
