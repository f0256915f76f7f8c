"""k-center."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.forecast import Order
from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.farthest import farthest
from attar.select.metrics import centred
from attar.select.view import View


@selector(
    "k-center",
    about="covers the feature space",
    choose="embeddings without labels",
    takes="1 min",
    paper="Sener & Savarese, Active Learning for Convolutional Neural Networks: A Core-Set Approach, ICLR 2018",
    cost="a short training, one forward pass of the data, and n·h operations per pick",
)
@dataclass(frozen=True)
class KCenter(Selector):
    r"""Pick so that no example is far from all picks, greedily for :math:`\min_S \max_i \min_{j \in S} \|h_i - h_j\|`.

    The first pick is the example nearest to the mean, each later one the farthest from all picks. The radius is at most
    twice the best possible. Scores are the radii after each pick.
    """

    needs: ClassVar[Needs] = Needs(labels=False, features=True)

    @property
    def grows(self) -> Order:
        return Order(picks=1)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        features = centred(view.features, columns=True)
        square: Tensor = torch.linalg.vector_norm(features, dim=1).square()  # without a second copy of the features
        rounding = 8 * torch.finfo(features.dtype).eps

        def squared_distances(i: int) -> Tensor:
            both = square + square[i]
            found = torch.addmv(both, features, features[i].contiguous(), alpha=-2)
            return found.masked_fill_(found < rounding * both, 0)  # copies are at distance zero, wherever they stand

        found = farthest(int(square.argmin()), len(view), squared_distances, size)
        return Selection(found.indices, found.scores.sqrt())
