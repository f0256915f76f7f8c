"""How long a condensation will take and how much memory, by rehearsing a few of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import NamedTuple

import torch

from attar.condense.driver import Condensation
from attar.core.cost import measure
from attar.core.forecast import ENOUGH, Order, Point, extrapolated, lap, spread
from attar.data import Data
from attar.nets.rehearsal import rehearsal

ROWS = 64  #: examples of a class in a rehearsal at least
OFTEN = 0.005  #: seconds between two looks at the memory

Begin = Callable[[Data], Condensation]


class Forecast(NamedTuple):
    """Seconds, and bytes beside the libraries."""

    seconds: float
    memory: int


class Tried(NamedTuple):
    """What was rehearsed."""

    seconds: float  #: of a run
    memory: int  #: peak, beside that of before
    spent: float  #: seconds that it took


def forecast(begin: Begin, order: Order, data: Data, each: int, steps: int) -> Forecast:
    r"""Time and memory of a condensation on this machine.

    .. math:: T = T_{\text{set-up}} + T_{\text{first step}} + (\text{steps} - 1) \cdot T_{\text{step}}

    Steps are rehearsed on all the data; where their time grows with it, on parts of it, and memory follows the line
    through the smallest and the largest. What a process does once only, such as imports in the first step, counts once.
    Nothing is changed or kept.

    Args:
        begin: Makes the condensation for some data.
        order: How the time of its steps grows.
        data: All the data.
        each: Examples of a class that it starts from.
        steps: All its steps.
    """
    if not order.rows:
        tried = _tried(begin, data, steps)
        return Forecast(tried.seconds, tried.memory + data.x.nbytes)
    groups, found = [(data.hard == c).nonzero().flatten() for c in range(data.classes)], dict[int, list[Tried]]()

    def rehearse(share: float) -> Point:
        few = [spread(group, max(ceil(share * len(group)), 2 * each)) for group in groups]
        some = data[torch.cat(few).sort().values]
        tried = _tried(begin, some, steps)
        found.setdefault(len(some), []).append(tried)
        return Point(order.work(len(some)), tried.seconds, tried.spent)

    first = min(1.0, ROWS * data.classes / len(data))
    rehearse(first)  # with what is done once
    seconds = extrapolated(rehearse, first, order.work(len(data)))
    few, many = min(found), max(found)
    cold, warm = found[few][0], Tried(*map(min, zip(*found[few], strict=True)))
    most = min(tried.memory for tried in found[many])
    slope = max(0.0, (most - warm.memory) / (many - few)) if many > few else 0.0
    memory = most + slope * (len(data) - many) + cold.memory - warm.memory
    return Forecast(seconds + cold.seconds - warm.seconds, round(memory) + data.x.nbytes)


def _tried(begin: Begin, data: Data, steps: int) -> Tried:
    """Take the set-up, and steps until they take long enough."""
    times = list[float]()
    with _watched(data.device) as peak:
        with rehearsal() as trained, lap(data.device) as setup:
            condensation = begin(data)
        while not times or (len(times) < steps and sum(times[1:]) < ENOUGH):
            with lap(data.device) as step:
                condensation.step()
            times.append(step.seconds)
    seconds = setup.seconds - trained.taken + trained.seconds + times[0] + (steps - 1) * median(times[1:] or times)
    return Tried(seconds, peak.bytes, setup.seconds + sum(times))


@dataclass
class _Peak:
    """Bytes at most."""

    bytes: int = 0


@contextmanager
def _watched(device: torch.device) -> Iterator[_Peak]:
    """The peak memory of a block beside that of before it: of the process, or on a GPU that of its tensors."""
    found = _Peak()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        yield found
        found.bytes = torch.cuda.max_memory_allocated(device) - before
        return
    with measure() as still:  # gives back what is free
        pass
    with measure(OFTEN) as cost:
        yield found
    found.bytes = max(0, cost.memory - still.memory)
