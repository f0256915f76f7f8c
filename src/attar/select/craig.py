"""CRAIG."""

from __future__ import annotations

from typing import ClassVar

from pydantic.dataclasses import dataclass
from torch import Generator

from attar.core.forecast import Order
from attar.core.registry import selector
from attar.select.contract import Selection
from attar.select.facility import locate
from attar.select.gradients import GradientSelector
from attar.select.metrics import GradientDistance
from attar.select.view import View


@selector(
    "craig",
    about="covers the gradients, weighted",
    choose="small sizes",
    takes="1 min",
    paper="Mirzasoleiman, Bilmes & Leskovec, Coresets for Data-efficient Training, ICML 2020",
    cost="a short training, one forward pass of the data, and n²·h operations",
)
@dataclass(frozen=True)
class CRAIG(GradientSelector):
    r"""Pick examples so that every gradient is near a picked one; each pick represents those nearest to it.

    .. math:: \Big\| \sum_i g_i - \sum_{j \in S} \gamma_j g_j \Big\| \le \sum_i \min_{j \in S} \|g_i - g_j\|, \qquad
        \gamma_j = |\{i : j = \arg\min_{s \in S} \|g_i - g_s\|\}|

    The right-hand side is minimised by facility location. Weights are the cluster sizes γ, scores the gains.
    """

    counted: ClassVar[bool] = True

    @property
    def grows(self) -> Order:
        return Order(rows=2)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        return locate(GradientDistance(self.seen(view).gradients), size, weighted=True, counts=view.counts)
