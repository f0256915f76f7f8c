"""Least confidence."""

from __future__ import annotations

from typing import ClassVar

from pydantic.dataclasses import dataclass
from torch import Generator

from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.ranking import highest
from attar.select.view import View


@selector(
    "least-confidence",
    about="least confident predictions",
    choose="not for small sizes",
    takes="1 min",
    paper="Coleman et al., Selection via Proxy, ICLR 2020",
    cost="a short training and one forward pass of the data",
)
@dataclass(frozen=True)
class LeastConfidence(Selector):
    r"""Pick the least confident predictions: the highest :math:`1 - \max_c p_c`."""

    needs: ClassVar[Needs] = Needs(labels=False)
    ranked: ClassVar[bool] = True

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        return highest(1 - view.probabilities.amax(1), size)
