"""Entropy."""

from __future__ import annotations

from pydantic.dataclasses import dataclass
from torch import Generator
from torch.nn.functional import log_softmax

from attar.core.registry import selector
from attar.select.contract import Selection
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
class Entropy:
    r"""Pick where the prediction is widest: the highest :math:`-\sum_c p_c \log p_c`."""

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        return highest(-(view.probabilities * log_softmax(view.logits, 1)).sum(1), size)
