"""Facility location: pick examples so that every example is near a pick."""

from __future__ import annotations

from math import ceil
from typing import Protocol

import torch
from torch import Tensor

from attar.core.cost import available
from attar.select.contract import Selection
from attar.select.greedy import lazy

SHARE = 0.25  #: share of the free memory that a table of all distances may use; other processes need some too
ELSEWHERE = 2**29  #: bytes that it may use on a device whose free memory is unknown
BLOCK = 2**22  #: distances that are computed at once
ROWS = 8  #: rows computed at once at least: products with fewer rows round differently than in a table
LOOK = 2**18  #: distances of a table that are read at once, to fit into the processor's cache


class Metric(Protocol):
    """Distances between examples; they obey the triangle inequality."""

    @property
    def sizes(self) -> Tensor:
        """Distance of every example to the auxiliary example e, the zero vector, ``(n,)``."""

    def rows(self, index: Tensor, since: int = 0) -> Tensor:
        """Distances of some examples to all from position ``since`` on, ``(len(index), n - since)``."""


class Table:
    """Distances that are given, ``(n, n)``."""

    def __init__(self, distances: Tensor) -> None:
        self.distances = distances

    @property
    def sizes(self) -> Tensor:
        return self.distances.amax(1) / 2

    def rows(self, index: Tensor, since: int = 0) -> Tensor:
        return self.distances.index_select(0, index)[:, since:]


class FacilityLocation:
    r"""The reduction in the sum of distances from all examples to their nearest pick.

    .. math:: F(S) = L(\{e\}) - L(S \cup \{e\}), \qquad L(S) = \sum_i \min_{j \in S} d_{ij}

    The auxiliary example e is at twice the largest distance to the origin from everything, an upper bound. Distances
    are kept in one table if it fits into memory; otherwise they are computed again whenever they are needed, a block
    at a time. The picks are the same.

    Args:
        metric: The distances.
        memory: Bytes that the table may use; by default a quarter of the free memory.
        counts: How many examples each one stands for, ``(n,)``; its distance counts as often. By default one each.
    """

    def __init__(self, metric: Metric, memory: int | None = None, counts: Tensor | None = None) -> None:
        self.metric, self.counts = metric, counts
        sizes = metric.sizes
        self.near = (2 * sizes.max()).expand(len(sizes)).clone()  #: distance to the nearest pick
        self.owner = torch.zeros_like(sizes, dtype=torch.int64)  #: which pick that is; the first in a tie
        self.picks: list[int] = []
        if not isinstance(metric, Table) and len(sizes) ** 2 * sizes.itemsize <= _room(memory, sizes.device):
            self.metric = Table(self._distances())

    def __len__(self) -> int:
        return len(self.near)

    def gain(self, candidates: Tensor) -> Tensor:
        block = LOOK if isinstance(self.metric, Table) else BLOCK
        parts = candidates.to(self.near.device).split(max(1, block // len(self)))
        return torch.cat([self._shorter(part) for part in parts])

    def add(self, i: int) -> None:
        row = self._rows(torch.tensor([i], device=self.near.device))[0]
        self.owner[row < self.near] = len(self.picks)
        self.owner[i] = len(self.picks)  # a duplicate of an earlier pick represents at least itself
        self.near = torch.minimum(self.near, row)
        self.picks.append(i)

    @property
    def clusters(self) -> Tensor:
        """The number of examples nearest to each pick, ``(picks,)``; they sum to n, or to the sum of the counts."""
        return torch.bincount(self.owner, self.counts, minlength=len(self.picks)).to(self.near.dtype)

    def _shorter(self, candidates: Tensor) -> Tensor:
        # Row by row, so that the gain of a candidate does not depend on the other candidates.
        rows = self._rows(candidates)
        shorter = torch.sub(self.near, rows, out=rows).clamp_(min=0)
        return (shorter if self.counts is None else shorter.mul_(self.counts)).sum(1)

    def _rows(self, index: Tensor) -> Tensor:
        if isinstance(self.metric, Table) or len(index) >= ROWS:
            return self.metric.rows(index)
        padded = torch.cat([index, index[:1].expand(ROWS - len(index))])
        return self.metric.rows(padded)[: len(index)]

    def _distances(self) -> Tensor:
        n = len(self.near)
        table = self.near.new_empty(n, n)
        for part in torch.arange(n, device=self.near.device).tensor_split(ceil(n * n / BLOCK)):  # no part has few rows
            since = int(part[0])  # distances are symmetric, so half of them are enough
            rows = self.metric.rows(part, since)
            table[since : since + len(part), since:] = rows
            table[since:, since : since + len(part)] = rows.T
        return table


def _room(memory: int | None, device: torch.device) -> int:
    """Bytes that a table may use."""
    if memory is not None:
        return memory
    return int(SHARE * available()) if device.type == "cpu" else ELSEWHERE


def locate(metric: Metric, size: int, *, weighted: bool, counts: Tensor | None = None) -> Selection:
    """Select by facility location; weights are the numbers of examples that the picks represent."""
    objective = FacilityLocation(metric, counts=counts)
    picks = lazy(objective, size)
    indices = picks.indices.to(objective.near.device)
    return Selection(indices, picks.gains.float().to(indices.device), objective.clusters if weighted else None)
