"""GraNd: gradient norms early in training."""

from __future__ import annotations

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.forecast import Order
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.ranking import early, highest
from attar.select.view import View


@selector(
    "grand",
    about="largest gradients, early on",
    choose="not for small sizes",
    takes="5 min",
    paper="Paul, Ganguli & Dziugaite, Deep Learning on a Data Diet, NeurIPS 2021",
    cost="several short trainings and a forward pass of the data for each",
)
@dataclass(frozen=True)
class GraNd(Selector):
    r"""Pick the largest gradients, averaged over networks early in training.

    .. math:: E_\theta \|\nabla \ell_i(\theta)\|_2 = E_\theta \|r_i\| \sqrt{\|h_i\|^2 + 1}

    with respect to the last layer, as in later work; the paper uses all layers.
    """

    networks: int = Field(default=5, ge=1, description="initialisations to average over")
    epochs: float = Field(default=1.0, gt=0, description="passes through the data of each network before that")

    @property
    def grows(self) -> Order:
        return Order(training=1)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        return highest(view.shared(self, self._norms), size)

    def _norms(self, view: View) -> Tensor:
        return torch.stack([seen.gradients.norms for seen in early(view, self.networks, self.epochs)]).mean(0)
