"""Dataset condensation with gradient matching."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import ClassVar, NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.contract import Condenser, Descent, Loss, Task
from attar.condense.matching import Pair, distances, pairs
from attar.core.registry import condenser
from attar.data import Data
from attar.nets.learner import SGD
from attar.nets.objective import Objective
from attar.nets.train import fit

#: Examples per class → matches per network, and network steps between two matches, as published.
PAPER_LOOPS = {1: (1, 1), 10: (10, 50), 20: (20, 25), 30: (30, 20), 40: (40, 15), 50: (50, 10)}


def paper_loops(per_class: int) -> tuple[int, int]:
    """The published loops for a size; on the line between its neighbours if it is not in the table."""
    size = min(max(per_class, min(PAPER_LOOPS)), max(PAPER_LOOPS))
    below = max(known for known in PAPER_LOOPS if known <= size)
    above = min(known for known in PAPER_LOOPS if known >= size)
    share = (size - below) / (above - below) if above > below else 0.0
    first, second = (a + share * (b - a) for a, b in zip(PAPER_LOOPS[below], PAPER_LOOPS[above], strict=True))
    return round(first), round(second)


class DCState(NamedTuple):
    """The network under which gradients are matched, and the number of matches so far."""

    theta: Tensor
    matched: int


@condenser(
    "dc",
    about="matches gradients",
    choose="published baseline, slow",
    takes="2 h",
    paper="Zhao, Mopuri & Bilen, Dataset Condensation with Gradient Matching, ICLR 2021",
    learns="pixels",
    cost="gradients of a real batch per class, and second derivatives through the synthetic examples",
)
@dataclass(frozen=True)
class DC(Condenser):
    r"""Match the gradients of real and synthetic examples of each class while a network is trained on the synthetic
    ones.

    .. math:: \min_S \; E_{\theta_0 \sim p_0} \sum_t \sum_c
        D\big(\nabla_\theta L(T_c; \theta_t), \nabla_\theta L(S_c; \theta_t)\big), \quad
        D(A, B) = \sum_l \sum_i \Big(1 - \frac{A^l_i \cdot B^l_i}{\|A^l_i\| \|B^l_i\|}\Big)

    over layers :math:`l` with weights and their output rows :math:`i`. After ``matches`` updates of :math:`S` a new
    :math:`\theta_0` is drawn; between two of them :math:`\theta` is trained on :math:`S` for ``net_steps`` steps.

    The learning rate is that for width 128, and is multiplied by (128 / width)^0.6 for ConvNets of other widths, whose
    gradients of images are smaller or larger by about that (docs/condensation.md).
    """

    batch: int = Field(default=256, ge=1, description="real examples per class and step")
    matches: int | None = Field(default=None, ge=1, description="matches before a new network; the paper's if not set")
    net_steps: int | None = Field(
        default=None, ge=0, description="network steps between matches; the paper's if not set"
    )
    net_lr: float = Field(default=0.01, gt=0, description="learning rate of the network")

    descent: ClassVar[Descent] = Descent(steps=1000, lr=0.1, momentum=0.5)
    growth: ClassVar[float] = 0.6
    shares: ClassVar[bool] = True
    mode: ClassVar[str] = "one"  #: one of the augmentations at random, or all of them in sequence

    def init(self, task: Task, gen: Generator) -> DCState:
        return DCState(task.network.init(gen), 0)

    def loss(self, syn: Data, state: DCState, task: Task, gen: Generator) -> Loss:
        matches, net_steps = self._loops(syn, task)
        theta, matched = state
        if matched == matches:
            theta, matched = task.network.init(gen), 0
        elif matched:  # the examples have changed since the last match, so this trains on the new ones
            batches = self._batches(syn.detach(), task, net_steps, gen)
            theta = fit(task.objective(), SGD(self.net_lr), theta, batches)
        matching = pairs(syn, task, self.batch, self._strategy(syn), gen, mode=self.mode)
        gap, metrics = self._gap(theta, matching, task)
        metrics = {name: task.share.total(part) for name, part in {"per_class": gap.detach(), **metrics}.items()}
        metrics["per_class"] = metrics["per_class"] / task.classes
        return Loss(gap, DCState(theta, matched + 1), metrics)

    def _strategy(self, syn: Data) -> str:
        return "none"

    def _loops(self, syn: Data, task: Task) -> tuple[int, int]:
        per_class = len(syn) // task.classes
        matches, net_steps = paper_loops(per_class)
        return self.matches or matches, net_steps if self.net_steps is None else self.net_steps

    def _batches(self, syn: Data, task: Task, steps: int, gen: Generator) -> Iterable[Data]:
        """The batches on which the network is trained between two matches."""
        return repeat(syn, steps)

    def _gap(self, theta: Tensor, matched: list[Pair], task: Task) -> tuple[Tensor, dict[str, Tensor]]:
        objective = Objective(task.network)
        real = objective.gradient(theta, [real for real, _ in matched])
        fake = objective.gradient(theta, [fake for _, fake in matched], graph=True)
        return distances(task.network, real, fake).sum(), {}
