"""GradMatch, on the gradient of the training data and on that of a validation set."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.forecast import Order
from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection
from attar.select.gradients import GradientSelector
from attar.select.nnls import nnls
from attar.select.view import View

PAPER = "Killamsetty et al., GRAD-MATCH: Gradient Matching based Data Subset Selection, ICML 2021"
COST = "a short training, one forward pass of the data, and n·C·h operations per pick"


@selector(
    "gradmatch",
    about="sum of gradients, weighted",
    choose="not for small sizes",
    takes="1 min",
    paper=PAPER,
    cost=COST,
)
@dataclass(frozen=True)
class GradMatch(GradientSelector):
    r"""Match the sum of all gradients by a few weighted ones: orthogonal matching pursuit with non-negative weights.

    .. math:: \min_{S, \, w \ge 0} \; \Big\| \sum_i g_i - \sum_{j \in S} w_j g_j \Big\|^2 + \lambda \|w\|^2

    The next pick has the largest inner product with the residual; then all weights are solved for again. The penalty is
    relative to the mean :math:`\|g_i\|^2`. Scores are the norms of the residual, relative to that of the target.
    """

    penalty: float = Field(default=0.1, gt=0, description="λ, in units of the mean squared gradient")

    @property
    def grows(self) -> Order:
        return Order(picks=1)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        view = self.seen(view)
        gradients, target = view.gradients, self._target(view)
        ridge = self.penalty * float(gradients.squares.mean(dtype=torch.float64))
        norm = target.norm()
        picks = torch.empty(0, dtype=torch.int64, device=target.device)
        weights = torch.empty(0, dtype=torch.float64, device=target.device)
        free = torch.ones(len(view), dtype=torch.bool, device=target.device)
        left, scores = target, []
        for _ in range(min(size, len(view))):
            pick = gradients.dot(left).masked_fill(~free, -torch.inf).argmax()
            free[pick] = False
            picks = torch.cat([picks, pick[None]])
            own = gradients[picks].double()
            gram = own.gram(own) + ridge * torch.eye(len(picks), dtype=torch.float64, device=target.device)
            weights = nnls(gram, own.dot(target.double()), torch.cat([weights, weights.new_zeros(1)]))
            left = (target.double() - own.sum(weights)).to(target)
            scores.append(left.norm() / norm.clamp(min=torch.finfo(norm.dtype).tiny))
        return Selection(picks, torch.stack(scores).float(), weights.float())

    def _target(self, view: View) -> Tensor:
        return view.gradients.sum()


@selector(
    "gradmatch-val",
    about="sum of validation gradients",
    choose="not for small sizes",
    takes="1 min",
    paper=PAPER,
    cost=COST + ", with a forward pass of the validation set",
)
@dataclass(frozen=True)
class GradMatchVal(GradMatch):
    """GradMatch to the mean gradient of a validation set, times the number of examples."""

    needs: ClassVar[Needs] = Needs(validation=True, features=True)

    def _target(self, view: View) -> Tensor:
        return view.validation.slopes(view.fitted).mean() * len(view)
