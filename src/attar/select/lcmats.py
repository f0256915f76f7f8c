"""LCMat-S: loss-curvature matching by selection."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.forecast import Order
from attar.core.registry import selector
from attar.select.contract import Selection
from attar.select.facility import locate
from attar.select.gradients import GradientSelector
from attar.select.metrics import CityDistance, GradientDistance
from attar.select.view import View


@selector(
    "lcmat-s",
    about="covers gradients and curvature",
    choose="small sizes",
    takes="1 min",
    paper="Shin et al., Loss-Curvature Matching for Dataset Selection and Condensation, AISTATS 2023",
    cost="a short training, one forward pass of the data, and n²·(h + 100) operations",
)
@dataclass(frozen=True)
class LCMatS(GradientSelector):
    r"""Pick examples so that every example is near a pick in gradient and in curvature.

    .. math:: d_{ij} = \|g_i - g_j\|_2
        + \tfrac{1}{2} \rho \sum_{k \in K} |\hat\lambda_{i,k} - \hat\lambda_{j,k}|

    summed over examples, from each to its nearest pick, bounds the difference between the loss changes of all examples
    and of the picks within :math:`\rho` of the parameters (Eq. 4 and 10). :math:`\hat\lambda_i` is the diagonal of the
    Hessian of example i with respect to the last layer, and K holds the coordinates where it varies most. Facility
    location minimises the bound. It holds for picks ``weighted`` by the numbers of examples that they represent. The
    paper found that weights harm training, so they are off by default; but without them the loss-curvature gap can be
    larger than that of a random subset. Try both on validation data.
    """

    rho: float = Field(default=0.1, ge=0, description="radius around the parameters; the paper uses 0.01 to 0.5")
    dimensions: int = Field(default=100, ge=1, description="coordinates of the Hessian diagonal that are matched")
    weighted: bool = Field(
        default=False,
        description="weight picks by how many examples they represent: matches curvature, may train worse",
    )

    counted: ClassVar[bool] = True

    @property
    def grows(self) -> Order:
        return Order(rows=2)

    def counting(self) -> LCMatS:
        return replace(self, weighted=True)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        return locate(
            CurvedDistance(self.seen(view), self.rho, self.dimensions), size, weighted=self.weighted, counts=view.counts
        )


class CurvedDistance:
    """The distance of the method's docstring."""

    def __init__(self, view: View, rho: float, dimensions: int) -> None:
        variances = view.curvatures.variances().flatten()
        widest = variances.topk(min(dimensions, len(variances))).indices
        self.gradient = GradientDistance(view.gradients)
        self.curvature = CityDistance(view.curvatures.columns(widest) * (rho / 2))

    @property
    def sizes(self) -> Tensor:
        return self.gradient.sizes + self.curvature.sizes

    def rows(self, index: Tensor, since: int = 0) -> Tensor:
        return self.gradient.rows(index, since).add_(self.curvature.rows(index, since))
