"""How long a selection will take, by rehearsing it on a part of its examples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import ceil

import torch
from torch import Tensor

from attar.core.forecast import Point, extrapolated, lap, spread
from attar.data import Data, Dataset
from attar.nets.passes import FORWARD
from attar.nets.rehearsal import Rehearsal, rehearsal
from attar.select.balance import PerClass
from attar.select.contract import Selection, Selector
from attar.select.keep import SelectionWarning, stream
from attar.select.mapreduce import MapReduce
from attar.select.sources import Embedded
from attar.select.view import View

ROWS, PICKS, BATCHES = 64, 10, 2  #: rows of a class, its picks, and batches of training in a rehearsal at least
HELD = 20  #: held-out examples of a class
STEEP = 0.1  #: seconds that a selection whose time grows faster than its rows takes in the largest rehearsal


def seconds(view: View, method: Selector, sizes: Sequence[int] | int) -> float:
    r"""Seconds of a selection on this machine.

    .. math:: T = \Big(\frac nm\Big)^t T_{\text{training}} + \frac nm T_{\text{pass}} + T_{\text{selection}}

    Training is timed by a few of its steps. The forward pass and the selection are timed by rehearsals on m of the n
    examples, and the selection is extrapolated by the method's order of growth. Nothing is changed or kept.

    Args:
        view: The examples.
        method: The method.
        sizes: Picks of every class, or of all examples together.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)  # networks are hardly trained
        return _Rehearsals(view, method, sizes).forecast()


def memory(view: View, method: Selector, sizes: Sequence[int] | int) -> int:
    """A rough estimate of the bytes of a selection beside the libraries; the arguments are those of ``seconds``.

    They are the examples, a table of distances where a method compares all examples of a class, and the features,
    predictions, training and forward passes of the network; where a method needs none, a copy of the examples instead.
    """
    network, data = view.network, view.data
    inner, most = (method.selector, method.part) if isinstance(method, MapReduce) else (method, len(data))
    rows = len(data) if isinstance(sizes, int) else int(torch.bincount(view.hard).max())
    table = min(rows, most) ** 2 if inner.grows.rows > 1 else 0
    held = data.x.nbytes if isinstance(data, Data) else 0
    if not inner.needs.network:
        return 2 * held + 4 * table
    seen = len(data) * (network.outputs().shape[1] + 2 * network.classes) if inner.needs.features else 0
    passing = max(min(FORWARD, view.chunk * network.activations), 3 * view.training.batch * network.activations)
    return held + 4 * (seen + table + passing + 6 * network.size)


class _Rehearsals:
    """A selection that is tried on parts of its examples; the arguments are those of ``seconds``."""

    def __init__(self, view: View, method: Selector, sizes: Sequence[int] | int) -> None:
        self.view, self.method, self.order = view, method, method.grows
        self.divided, self.device = not isinstance(sizes, int), view.data.device
        self.sizes = [sizes] if isinstance(sizes, int) else list(sizes)
        self.groups = [torch.arange(len(view), device=self.device)]
        if self.divided:
            self.groups = [(view.hard == c).nonzero().flatten() for c in range(len(self.sizes))]
        self.training: float | None = None  #: seconds of training all networks, from the first rehearsal
        self.row = float("inf")  #: seconds of the forward pass of a row

    def forecast(self) -> float:
        """Seconds of the whole selection."""
        n, largest = len(self.view), max(map(len, self.groups))
        rows = max(ROWS * len(self.groups), BATCHES * self.view.training.batch)
        first = min(1.0, max(rows / n, self.order.since / largest))
        least = STEEP if self.order.rows > 1 else 0.0
        selecting = extrapolated(self._rehearse, first, self._work(self.groups, self.sizes), least)
        return (self.training or 0.0) + self.row * n + selecting

    def _rehearse(self, share: float) -> Point:
        """Select from a share of every class, as many as are in proportion but ten at least."""
        sizes = [min(size, max(PICKS, ceil(size * share))) for size in self.sizes]
        groups = [
            spread(group, max(ceil(len(group) * share), 2 * size))
            for group, size in zip(self.groups, sizes, strict=True)
        ]
        part = self.view.alone(torch.cat(groups).sort().values, self._held(share))
        checking = passing = 0.0
        with rehearsal(brief=self.training is not None) as trained:
            if self.method.needs.features and not self.order.training:  # else it has networks of its own
                seen = self.method.seen(part)
                if not isinstance(seen, Embedded):  # the checks of the network's fit take the same time for all n
                    checking = self._timed(lambda: seen.theta, trained)
                passing = self._timed(lambda: seen.features, trained)
            selecting = self._timed(lambda: self._select(part, sizes), trained)
        if self.training is None:
            self.training = checking + trained.seconds * (len(self.view) / len(part)) ** self.order.training
        self.row = min(self.row, passing / len(part))
        return Point(self._work(groups, sizes), selecting, checking + passing + selecting)

    def _select(self, part: View, sizes: list[int]) -> Selection:
        gen = stream(self.view.gen, "forecast")
        if not self.divided:
            return self.method.checked(part, self.method.select(part, sizes[0], gen))
        return self.method.checked(part, PerClass(self.method).share(part, sizes, gen))

    def _timed(self, work: Callable[[], object], trained: Rehearsal) -> float:
        """Seconds of some work without those of the steps of training in it."""
        before = trained.taken
        with lap(self.device) as timed:
            work()
        return max(0.0, timed.seconds - (trained.taken - before))

    def _work(self, groups: Sequence[Tensor], sizes: Sequence[int]) -> float:
        return sum(self.order.work(len(group), size) for group, size in zip(groups, sizes, strict=True))

    def _held(self, share: float) -> Dataset | View | None:
        """A share of the held-out examples, with all classes, if the method looks at them."""
        held = self.view.held
        if held is None or not self.method.needs.validation:
            return held
        labels = held.y if isinstance(held, View) else held.labels
        by_class = (labels if labels.ndim == 1 else labels.argmax(1)).argsort(stable=True)
        some = spread(by_class, max(ceil(len(held) * share), HELD * self.view.network.classes))
        return held.alone(some, None) if isinstance(held, View) else held.take(some)
