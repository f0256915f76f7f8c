"""Average real examples."""

from __future__ import annotations

from typing import ClassVar

from pydantic.dataclasses import dataclass
from torch import Generator

from attar.condense.contract import Condenser, Descent, Loss, NoState, Task
from attar.condense.source import Synthetic
from attar.core.forecast import Order
from attar.core.registry import condenser


@condenser(
    "average-real",
    about="means of a class",
    choose="untrained baseline",
    takes="1 s",
    paper="the baseline of Wang, Zhu, Torralba & Efros, Dataset Distillation, 2018",
    learns="pixels, in closed form",
    cost="one pass over the data",
)
@dataclass(frozen=True)
class AverageReal(Condenser):
    r"""The mean of a class, or with several examples per class, the means of as many random parts of it.

    .. math:: x_j = \tfrac{1}{|P_j|} \sum_{i \in P_j} x_i

    They are what learning starts from with ``init=mean``; here nothing is learnt.
    """

    descent: ClassVar[Descent] = Descent(steps=1, init="mean")

    @property
    def grows(self) -> Order:
        return Order()

    def loss(self, syn: Synthetic, state: NoState, task: Task, gen: Generator) -> Loss:
        return Loss(0 * syn.x.sum(), state, {})
