"""Herding."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.core.forecast import Order
from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.metrics import centred
from attar.select.view import View


@selector(
    "herding",
    about="typical examples of a class",
    choose="choose it first",
    takes="1 min",
    paper="Welling, Herding Dynamical Weights to Learn, ICML 2009",
    cost="a short training, one forward pass of the data, and n·h operations per pick",
)
@dataclass(frozen=True)
class Herding(Selector):
    r"""Pick greedily so that the mean of the picked features stays close to the mean of all.

    .. math:: i_{k+1} = \arg\min_i \Big\| \mu - \tfrac{1}{k+1} \Big(\sum_{j \le k} \phi_{i_j} + \phi_i\Big) \Big\|

    With :math:`\mu = 0`, the best candidate has the largest
    :math:`-\langle \phi_i, \sum_j \phi_{i_j} \rangle - \tfrac12 \|\phi_i\|^2`. Scores are the distances that remain.
    """

    needs: ClassVar[Needs] = Needs(labels=False, features=True)

    @property
    def grows(self) -> Order:
        return Order(picks=1)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        features = centred(view.features, columns=True)
        minus_half_square = torch.linalg.vector_norm(features, dim=1).square() / -2
        total = torch.zeros(features.shape[1], dtype=torch.float64, device=features.device)
        picks, left = [], []
        for k in range(min(size, len(view))):
            pick = int(torch.addmv(minus_half_square, features, total.to(features), alpha=-1).argmax())
            minus_half_square[pick] = -torch.inf  # taken
            total = total + features[pick]
            picks.append(pick)
            left.append((total / (k + 1)).norm())
        return Selection(torch.tensor(picks, device=features.device), torch.stack(left).float())
