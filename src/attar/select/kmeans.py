"""k-means."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.core.forecast import Order
from attar.core.method import Needs
from attar.core.registry import selector
from attar.data.clusters import centres
from attar.select.contract import Selection, Selector
from attar.select.view import View


@selector(
    "k-means",
    about="nearest to cluster centres",
    choose="untrained baseline",
    takes="30 s",
    paper="the baseline of Wang, Zhu, Torralba & Efros, Dataset Distillation, 2018",
    cost="some n·k·d operations, on the examples themselves",
)
@dataclass(frozen=True)
class KMeans(Selector):
    r"""The real example nearest to each cluster centre of the examples themselves.

    .. math:: \min_{\mu_1, \ldots, \mu_k} \sum_i \min_j \|x_i - \mu_j\|^2, \quad i_j = \arg\min_i \|x_i - \mu_j\|

    Scores are minus the distances. An example that is nearest to two centres is taken once, and the next nearest for
    the other.
    """

    needs: ClassVar[Needs] = Needs(labels=False, network=False)
    nested: ClassVar[bool] = False

    @property
    def grows(self) -> Order:
        return Order(picks=1)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        x = torch.cat([part.dense().x.flatten(1) for part in view.data.chunks(view.chunk)])
        means = centres(x, min(size, len(x)), gen)
        apart = torch.cdist(means, x)
        picks: list[int] = []
        scores: list[torch.Tensor] = []
        for row in apart:
            row[picks] = torch.inf
            picks.append(int(row.argmin()))
            scores.append(-row[picks[-1]])
        return Selection(torch.tensor(picks, device=x.device), torch.stack(scores))
