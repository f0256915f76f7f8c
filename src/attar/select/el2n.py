"""EL2N: error norms early in training."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.forecast import Order
from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.ranking import early, highest
from attar.select.view import View


@selector(
    "el2n",
    about="largest errors, early on",
    choose="not for small sizes",
    takes="5 min",
    paper="Paul, Ganguli & Dziugaite, Deep Learning on a Data Diet, NeurIPS 2021",
    cost="several short trainings and a forward pass of the data for each",
)
@dataclass(frozen=True)
class EL2N(Selector):
    r"""Pick the largest errors, :math:`E_\theta \|p_i(\theta) - y_i\|_2`, averaged over networks early in training."""

    needs: ClassVar[Needs] = Needs()

    networks: int = Field(default=5, ge=1, description="initialisations to average over")
    epochs: float = Field(default=1.0, gt=0, description="passes through the data of each network before that")

    @property
    def grows(self) -> Order:
        return Order(training=1)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        return highest(view.shared(self, self._errors), size)

    def _errors(self, view: View) -> Tensor:
        return torch.stack([seen.residuals.norm(dim=1) for seen in early(view, self.networks, self.epochs)]).mean(0)
