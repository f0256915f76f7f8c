"""Forecasts of time: work is rehearsed on small parts of the data and extrapolated by its known order of growth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

ENOUGH = 0.5  #: seconds that the largest rehearsal takes at least
LONG = 4.0  #: seconds from which on none is larger or repeated
AGAIN = 2  #: how often rehearsals are repeated; the shortest counts, since other processes only add time
SIZES = 3  #: of rehearsals at least, unless they take long


class Order(NamedTuple):
    """How the time of a method grows, beside that of training networks: as rows^p · picks^q, from some rows on.

    Rows are the examples of a class where classes are independent. Of a method that learns it is the time of a step.
    """

    rows: float = 1.0
    picks: float = 0.0
    training: float = 0.0  #: power with which the steps of training networks grow with the rows
    since: int = 1  #: rows from which on this holds
    until: int | None = None  #: rows from which on the time stays the same

    def work(self, rows: int, picks: int = 1) -> float:
        """The work for so many rows and picks, in a unit of its own."""
        counted = rows if self.until is None else min(rows, self.until)
        return float(counted**self.rows * picks**self.picks)


class Point(NamedTuple):
    """One rehearsal: how much work, how long it took, and how long with all that belongs to the rehearsal."""

    work: float
    seconds: float
    spent: float


@dataclass
class Lap:
    """The seconds of a block of code."""

    seconds: float = 0.0


@contextmanager
def lap(device: torch.device, waits: bool = False) -> Iterator[Lap]:
    """Time a block: by wall clock or by processor time, whichever is less.

    A busy machine adds to the first, several threads to the second. By the clock alone, if other devices compute or the
    block ``waits`` for files.
    """
    found, (wall, cpu) = Lap(), now()
    yield found
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    later = now()
    clock = waits or device.type != "cpu"
    found.seconds = later[0] - wall if clock else min(later[0] - wall, later[1] - cpu)


def now() -> tuple[float, float]:
    """Wall clock and processor time in seconds."""
    return time.perf_counter(), time.process_time()


def extrapolated(rehearse: Callable[[float], Point], first: float, work: float, least: float = 0.0) -> float:
    r"""Seconds of all the work, from rehearsals on shares of the data.

    Shares are doubled until a rehearsal takes long enough. The line through the smallest m and the largest M,

    .. math:: T(w) = t_M + \frac{t_M - t_m}{w_M - w_m} (w - w_M),

    is followed to the work w. If the first rehearsal already takes long, m is half of it: it shows what does not grow.

    Args:
        rehearse: Does a share of the work, between 0 and 1, and says how much it was and how long it took.
        first: The smallest share.
        work: All the work, in the unit of the rehearsals.
        least: Seconds that the work of the largest rehearsal takes, unless the rehearsal takes long.
    """
    share, sizes, small = first, 1, Point(0.0, 0.0, 0.0)
    lowest = large = rehearse(share)
    while share < 1 and large.spent < LONG and (large.spent < ENOUGH or large.seconds < least or sizes < SIZES):
        share, sizes, small = min(1.0, 2 * share), sizes + 1, lowest
        large = rehearse(share)
    if large.spent >= LONG and sizes == 1 and (half := rehearse(first / 2)).work < large.work:
        small = half
    for _ in range(AGAIN if large.spent < LONG else 0):
        small = min(small, rehearse(first)) if sizes > 1 else small
        large = min(large, rehearse(share))
    if large.work <= small.work:
        return large.seconds
    slope = max(0.0, (large.seconds - small.seconds) / (large.work - small.work))
    return large.seconds + slope * (work - large.work)


def spread(index: Tensor, count: int) -> Tensor:
    """So many of the places, equally spaced; all if there are fewer."""
    count, last = min(count, len(index)), len(index) - 1
    return index[torch.linspace(0, last, count, dtype=torch.float64, device=index.device).long()]
