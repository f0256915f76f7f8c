"""Facility location with the nearest neighbours only."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.forecast import Order
from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.greedy import lazy
from attar.select.neighbours import EXACT, Neighbours, neighbours
from attar.select.view import View


@selector(
    "facility-neighbours",
    about="covers features, by neighbours",
    choose="many embeddings",
    takes="1 min",
    paper="Lindgren, Wu & Dimakis, Leveraging Sparsity for Efficient Submodular Data Summarization, NeurIPS 2016",
    cost="a short training, one forward pass of the data, and n·log n·h operations (usearch above 4,096 examples)",
)
@dataclass(frozen=True)
class FacilityNeighbours(Selector):
    r"""Pick examples so that every example is near a pick, as far as its nearest neighbours tell.

    .. math:: \min_S \sum_i \min \Big( r_i, \min_{j \in S \cap N_i} \|h_i - h_j\| \Big)

    :math:`N_i` are the nearest neighbours of i, found by a graph search where there are many examples, and :math:`r_i`
    is the distance to the farthest of them. Memory is n times the number of neighbours instead of n². Scores are the
    gains.
    """

    neighbours: int = Field(default=64, ge=2, description="nearest neighbours of every example that are looked at")

    needs: ClassVar[Needs] = Needs(labels=False, features=True)

    @property
    def grows(self) -> Order:
        return Order(since=EXACT + 1)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        objective = Sparse(neighbours(view.features, self.neighbours))
        picks = lazy(objective, size)
        indices = picks.indices.to(objective.near.device)
        return Selection(indices, picks.gains.float().to(indices.device))


class Sparse:
    """The reduction in the sum of distances, from every example to the nearest pick among its neighbours."""

    def __init__(self, found: Neighbours) -> None:
        n, count = found.places.shape
        self.near = found.distances[:, -1].clone()  #: distance to the nearest pick, or to the farthest neighbour
        order = found.places.flatten().argsort(stable=True)
        self.of = order // count  #: examples, those with the same neighbour together
        self.distances = found.distances.flatten()[order]
        counts = found.places.flatten().bincount(minlength=n)
        self.ends = counts.cumsum(0)
        self.starts = self.ends - counts

    def __len__(self) -> int:
        return len(self.near)

    def gain(self, candidates: Tensor) -> Tensor:
        places = candidates.to(self.near.device)
        sizes = self.ends[places] - self.starts[places]
        row = torch.arange(len(places), device=sizes.device).repeat_interleave(sizes)
        within = torch.arange(int(sizes.sum()), device=sizes.device) - (sizes.cumsum(0) - sizes)[row]
        edges = self.starts[places][row] + within
        shorter = (self.near[self.of[edges]] - self.distances[edges]).clamp_(min=0)
        return shorter.new_zeros(len(places), dtype=torch.float64).index_add_(0, row, shorter.double())

    def add(self, i: int) -> None:
        edges = slice(int(self.starts[i]), int(self.ends[i]))
        self.near[self.of[edges]] = torch.minimum(self.near[self.of[edges]], self.distances[edges])
