"""Margin."""

from __future__ import annotations

from typing import ClassVar

from pydantic.dataclasses import dataclass
from torch import Generator

from attar.core.errors import AttarError
from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.ranking import highest
from attar.select.view import View


@selector(
    "margin",
    about="two classes nearly as likely",
    choose="not for small sizes",
    takes="1 min",
    paper="Coleman et al., Selection via Proxy, ICLR 2020",
    cost="a short training and one forward pass of the data",
)
@dataclass(frozen=True)
class Margin(Selector):
    r"""Pick the smallest margins between two classes: the highest :math:`1 - (p_{(1)} - p_{(2)})`."""

    needs: ClassVar[Needs] = Needs(labels=False)
    ranked: ClassVar[bool] = True

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        if view.probabilities.shape[1] < 2:
            raise AttarError("A margin needs at least two classes, and there is one: choose another method.")
        first, second = view.probabilities.topk(2, dim=1).values.unbind(1)
        return highest(1 - (first - second), size)
