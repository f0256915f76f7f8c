"""k-center."""

from __future__ import annotations

import torch
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.registry import selector
from attar.select.contract import Selection
from attar.select.farthest import farthest
from attar.select.metrics import centred
from attar.select.view import View


@selector(
    "k-center",
    about="covers the feature space",
    choose="embeddings without labels",
    takes="1 min",
    paper="Sener & Savarese, Active Learning for Convolutional Neural Networks: A Core-Set Approach, ICLR 2018",
    cost="a short training, one forward pass of the data, and n·h operations a pick",
)
@dataclass(frozen=True)
class KCenter:
    r"""Pick so that no example is far from all picks: greedily for :math:`\min_S \max_i \min_{j \in S} \|h_i - h_j\|`.

    The first pick is the example nearest to the mean, each other one the farthest from what was taken. The radius is
    at most twice the best possible. Scores are the radii left.
    """

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        features = centred(view.features)
        square: Tensor = torch.linalg.vector_norm(features, dim=1).square()  # without a second copy of the features

        def distances(i: int) -> Tensor:
            near = (square + square[i]).sub_(features @ features[i], alpha=2).clamp_(min=0).sqrt_()
            near[i] = 0
            return near

        return farthest(int(square.argmin()), len(view), distances, size)
