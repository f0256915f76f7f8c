"""Cluster centres."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.contract import Condenser, Descent, Loss, NoState, Task
from attar.condense.source import Synthetic
from attar.core.forecast import Order
from attar.core.registry import condenser
from attar.data.clusters import centres


@condenser(
    "k-means-centres",
    about="cluster means of a class",
    choose="untrained baseline",
    takes="30 s",
    paper="the baseline of Wang, Zhu, Torralba & Efros, Dataset Distillation, 2018",
    learns="pixels, in closed form",
    cost="some n·k·d operations, on the examples themselves",
)
@dataclass(frozen=True)
class KMeansCentres(Condenser):
    r"""The cluster means of the examples of a class; with one per class, the average real example.

    .. math:: \min_{\mu_1, \ldots, \mu_k} \sum_{i \in c} \min_j \|x_i - \mu_j\|^2

    The objective is :math:`\tfrac12 \|S - \mu\|^2`, so that one step of length one lands on the means.
    """

    descent: ClassVar[Descent] = Descent(steps=1, lr=1.0, momentum=0.0)

    @property
    def grows(self) -> Order:
        return Order()

    def loss(self, syn: Synthetic, state: NoState, task: Task, gen: Generator) -> Loss:
        wanted = torch.cat([self._of_class(task, c, int((syn.hard == c).sum()), gen) for c in range(task.classes)])
        order = torch.argsort(syn.hard, stable=True)
        gap = syn.x[order].flatten(1) - wanted
        return Loss(gap.square().sum() / 2, state, {})

    def _of_class(self, task: Task, c: int, k: int, gen: Generator) -> Tensor:
        return centres(task.data.dense().x[task.data.hard == c].flatten(1), k, gen)
