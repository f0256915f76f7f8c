"""AdaCore."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.core.forecast import Order
from attar.core.registry import selector
from attar.select.contract import Selection
from attar.select.facility import locate
from attar.select.gradients import GradientSelector
from attar.select.metrics import WeighedGradientDistance
from attar.select.view import View


@selector(
    "adacore",
    about="covers gradients by curvature",
    choose="little training only",
    takes="1 min",
    paper="Pooladzandi, Davini & Mirzasoleiman, Adaptive Second Order Coresets for Data-efficient Machine Learning, "
    "ICML 2022",
    cost="a short training, one forward pass of the data, and n²·C·h operations",
)
@dataclass(frozen=True)
class AdaCore(GradientSelector):
    r"""CRAIG on gradients that are preconditioned by the curvature of the loss.

    .. math:: d_{ij} = \|D^{-1} (g_i - g_j)\|_2, \qquad D = \mathrm{diag} H + \tau \, \overline{\mathrm{diag} H}

    The paper estimates diag H by Hutchinson's :math:`E[z \circ Hz]` and smooths the estimates over time. For a linear
    last layer the expectation is known exactly: the mean of :math:`p (1 - p) \otimes [h^2, 1]`. A share :math:`\tau`
    of its mean is added, so that flat directions do not dominate. Weights are off by default, as in the comparison of
    LCMat, which found that they harm training.
    """

    smoothing: float = Field(
        default=0.1, gt=0, description="share of the mean curvature that is added to every coordinate"
    )
    weighted: bool = Field(default=False, description="weight every pick by the number of examples that it represents")

    counted: ClassVar[bool] = True

    @property
    def grows(self) -> Order:
        return Order(rows=2)

    def counting(self) -> AdaCore:
        return replace(self, weighted=True)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        view = self.seen(view)
        diagonal = view.curvatures.mean()
        flat = (
            view.fitted or float(diagonal.max()) <= torch.finfo(diagonal.dtype).tiny
        )  # no curvature to precondition by
        if view.fitted:
            diagonal = diagonal[:1]  # one row, because features replace gradients
        scale = torch.ones_like(diagonal) if flat else 1 / (diagonal / diagonal.mean() + self.smoothing)
        return locate(WeighedGradientDistance(view.gradients, scale), size, weighted=self.weighted, counts=view.counts)
