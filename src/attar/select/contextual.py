"""Contextual diversity."""

from __future__ import annotations

from math import log
from typing import ClassVar

from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.nn.functional import log_softmax

from attar.core.forecast import Order
from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.farthest import farthest
from attar.select.view import View


@selector(
    "contextual-diversity",
    about="covers the predictions",
    choose="not for small sizes",
    takes="1 min",
    paper="Agarwal et al., Contextual Diversity for Active Learning, ECCV 2020",
    cost="a short training, one forward pass of the data, and n·C operations per pick",
)
@dataclass(frozen=True)
class ContextualDiversity(Selector):
    r"""k-center under the symmetric divergence of predictions.

    .. math:: d_{ij} = KL(p_i \| p_j) + KL(p_j \| p_i) = \sum_c (p_{ic} - p_{jc}) (\log p_{ic} - \log p_{jc})

    The first pick is the example nearest to the mean prediction. The divergence is not a metric, so the bound of
    k-center does not hold. Scores are the largest divergences that remain.
    """

    needs: ClassVar[Needs] = Needs(labels=False)

    @property
    def grows(self) -> Order:
        return Order(picks=1)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        p, log_p = view.probabilities, log_softmax(view.logits, 1)

        def divergence(q: Tensor, log_q: Tensor) -> Tensor:
            return ((p - q) * (log_p - log_q)).sum(1)

        mean = log_p.logsumexp(0) - log(len(log_p))
        first = int(divergence(mean.exp(), mean).argmin())
        return farthest(first, len(view), lambda i: divergence(p[i], log_p[i]), size)
