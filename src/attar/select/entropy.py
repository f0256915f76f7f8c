"""Entropy."""

from __future__ import annotations

from typing import ClassVar

from pydantic.dataclasses import dataclass
from torch import Generator
from torch.nn.functional import log_softmax

from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.ranking import highest
from attar.select.view import View


@selector(
    "entropy",
    about="most uncertain predictions",
    choose="not for small sizes",
    takes="1 min",
    paper="Coleman et al., Selection via Proxy, ICLR 2020",
    cost="a short training and one forward pass of the data",
)
@dataclass(frozen=True)
class Entropy(Selector):
    r"""Pick the predictions with the highest entropy, :math:`-\sum_c p_c \log p_c`."""

    needs: ClassVar[Needs] = Needs(labels=False)
    ranked: ClassVar[bool] = True

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        return highest(-(view.probabilities * log_softmax(view.logits, 1)).sum(1), size)
