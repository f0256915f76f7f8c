"""Glister, on the training loss and on the validation loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.forecast import Order
from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection
from attar.select.gradients import GradientSelector
from attar.select.greedy import Picks, in_rounds, naive
from attar.select.scoring import logit_gradients
from attar.select.view import View

PAPER = "Killamsetty et al., GLISTER: Generalization based Data Subset Selection, AAAI 2021"
COST = "a short training, one forward pass of the data, and n·C·h operations per pick"


@selector(
    "glister",
    about="lowers the training loss most",
    choose="not for small sizes",
    takes="1 min",
    paper=PAPER,
    cost=COST,
)
@dataclass(frozen=True)
class Glister(GradientSelector):
    r"""Pick the example whose gradient step of the last layer lowers the loss on a set V most.

    .. math:: L_V(\theta - \eta g_j) \approx L_V(\theta) - \eta \langle g_j, \nabla L_V(\theta) \rangle

    After every pick the last layer takes that step, :math:`\theta \leftarrow \theta - \eta g_j`, and
    :math:`\nabla L_V` is computed again there. V is the training data itself. Scores are the gains.

    With class balance, V still holds all classes, and picks are made in rounds of one from each class. Judged by its
    own class alone, the best example would be the one that makes its class more probable everywhere; selection from
    parts (``part``, and tables) still judges so.
    """

    eta: float = Field(
        default=0.3, gt=0, description="step size; at 1 an average example moves its own logits by its residual"
    )

    @property
    def grows(self) -> Order:
        return Order(picks=1)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        view = self.seen(view)
        return _selection(view, naive(OneStep(view, self._judge(view), self.eta), size))

    def of_classes(self, view: View, sizes: Sequence[int], gen: Generator) -> Selection | None:
        view = self.seen(view)
        if view.fitted:  # features replace gradients, and those of a class say nothing about others
            return None
        picks = in_rounds(OneStep(view, self._judge(view), self.eta), view.hard, sizes)
        by_class = view.hard.cpu()[picks.indices].argsort(stable=True)
        return _selection(view, Picks(picks.indices[by_class], picks.gains[by_class]))

    def _judge(self, view: View) -> View:
        return view


@selector(
    "glister-val",
    about="lowers the validation loss",
    choose="not for small sizes",
    takes="1 min",
    paper=PAPER,
    cost=COST + ", with a forward pass of the validation set",
)
@dataclass(frozen=True)
class GlisterVal(Glister):
    """Glister with a validation set as V."""

    needs: ClassVar[Needs] = Needs(validation=True, features=True)

    def _judge(self, view: View) -> View:
        return view.validation


def _selection(view: View, picks: Picks) -> Selection:
    device = view.features.device
    return Selection(picks.indices.to(device), picks.gains.float().to(device))


class OneStep:
    """How much a gradient step of the last layer on each candidate lowers the loss on V, to first order."""

    def __init__(self, view: View, judge: View, eta: float) -> None:
        self.gradients, self.held, self.fitted = view.gradients, judge.slopes(view.fitted), view.fitted
        self.step = eta / (float(view.features.square().sum(1).mean() + view.bias) or 1.0)
        self.logits, self.labels, self.kind = judge.logits, judge.targets, judge.look.gradient
        self.slope = self.held.mean()

    def __len__(self) -> int:
        return len(self.gradients)

    def gain(self, candidates: Tensor) -> Tensor:
        some = self.gradients if len(candidates) == len(self) else self.gradients[candidates]
        return self.step * some.dot(self.slope)

    def add(self, i: int) -> None:
        if self.fitted:  # features replace gradients, and there is no step along features
            return
        near = self.held.right @ self.gradients.right[i] + float(self.held.bias)
        self.logits = self.logits - self.step * near[:, None] * self.gradients.left[i]
        slopes = logit_gradients(self.logits, self.labels, self.kind)
        self.held = type(self.held)(slopes, self.held.right, self.held.bias)
        self.slope = self.held.mean()
