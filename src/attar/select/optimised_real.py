"""Optimised real examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.core.forecast import Order
from attar.core.method import Needs
from attar.core.registry import selector
from attar.nets.objective import Objective
from attar.nets.train import train
from attar.select.contract import Selection, Selector
from attar.select.view import View


@selector(
    "optimised-real",
    about="best of many random subsets",
    choose="a baseline",
    takes="2 min",
    paper="the baseline of Wang, Zhu, Torralba & Efros, Dataset Distillation, 2018",
    cost="one training on the subset and a forward pass of some training examples per try",
)
@dataclass(frozen=True)
class OptimisedReal(Selector):
    r"""The random subset on which training leads to the lowest training loss.

    .. math:: \min_{S_1, \ldots, S_k \sim \text{uniform}} L(T; \theta(S_j))

    Scores are minus that loss, the same for all picks.
    """

    needs: ClassVar[Needs] = Needs()
    nested: ClassVar[bool] = False

    tries: int = Field(default=20, ge=1, description="random subsets that are tried")
    steps: int = Field(default=100, ge=1, description="training steps on each")
    judged: int = Field(default=5000, ge=1, description="training examples that the loss is measured on")

    @property
    def grows(self) -> Order:
        return Order(until=self.judged)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        everyone = torch.arange(len(view), device=view.data.device)
        return self._best(view, [everyone], [min(size, len(view))], gen)

    def of_classes(self, view: View, sizes: Sequence[int], gen: Generator) -> Selection:
        """Choose the examples of all classes together, because a network is trained on all of them."""
        members = [(view.hard == c).nonzero().flatten() for c in range(len(sizes))]
        return self._best(view, members, sizes, gen)

    def _best(self, view: View, groups: Sequence[torch.Tensor], sizes: Sequence[int], gen: Generator) -> Selection:
        def some(members: torch.Tensor, size: int) -> torch.Tensor:
            order = torch.randperm(len(members), generator=gen, device=gen.device)[:size]
            return members[order.to(members.device)]

        judges = view.data.take(some(torch.arange(len(view), device=view.data.device), self.judged))
        training, objective = replace(view.training, steps=self.steps), Objective(view.network)
        best, lowest = torch.empty(0), float("inf")
        for _ in range(self.tries):
            picks = torch.cat([some(members, size) for members, size in zip(groups, sizes, strict=True)])
            theta = train(view.network, view.data.take(picks), training, gen)[0]
            with torch.no_grad():
                loss = float(objective.value(theta, judges))
            if loss < lowest:
                best, lowest = picks, loss
        return Selection(best, torch.full((len(best),), -lowest, device=best.device))
