"""Label solve."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense import kernels
from attar.condense.contract import REGRESSION, Condenser, Descent, Inference, Loss, Needs, NoState, Task
from attar.condense.kernels import factorise, require_room
from attar.condense.source import Pixels, Source
from attar.condense.wide import Kernel
from attar.core.forecast import Order
from attar.core.registry import condenser
from attar.data import Data
from attar.data.data import soft
from attar.nets.losses import targets


class Solution(NamedTuple):
    """The optimal labels, centred, ``(s, classes)``, their loss, and the largest jitter that was added."""

    labels: Tensor
    loss: Tensor
    jitter: float


@condenser(
    "label-solve",
    about="learns labels in closed form",
    choose="almost free",
    takes="1 s",
    paper="Nguyen, Chen & Lee, Dataset Meta-Learning from Kernel Ridge-Regression, ICLR 2021",
    learns="soft labels",
    cost="kernels between all real examples and the fixed ones, once",
)
@dataclass(frozen=True)
class LabelSolve(Condenser):
    r"""Learn the labels of fixed examples from which kernel ridge regression predicts the real labels best.

    .. math:: \hat y_S^* = \arg\min_{\hat y_S} \tfrac12 \sum_K \|\hat y_T - A_K \hat y_S\|^2
        = A^+ \hat y_T, \quad A_K = K_{TS} \Big(K_{SS} + \lambda \tfrac{\mathrm{tr} K_{SS}}{|S|} I\Big)^{-1}

    over all real examples T and all kernels that are named (see ``kip``). The objective is
    :math:`\tfrac12 \|y_S - y_S^*\|^2`, so that one gradient step of size one reaches the solution.
    """

    kernels: str = Field(default="ntk1", description="kernels whose errors are added, such as ntk1-cntk1-rbf-features")
    ridge: float = Field(default=1e-6, ge=0, description="λ, in units of the kernel's mean diagonal")
    batch: int = Field(default=4096, ge=1, description="real examples at a time; all are used")

    descent: ClassVar[Descent] = Descent(steps=1, lr=1.0, momentum=0.0)
    needs: ClassVar[Needs] = Needs(base=True)

    @property
    def inference(self) -> Inference:
        """The labels are regression targets."""
        return Inference("last-layer-vi", {}, REGRESSION)

    @property
    def grows(self) -> Order:
        return Order()

    def source(self, start: Data, gen: Generator) -> Source:
        return Pixels(start, "targets", pixels=False)

    def __post_init__(self) -> None:
        kernels.parse(self.kernels)

    def loss(self, syn: Data, state: NoState, task: Task, gen: Generator) -> Loss:
        named = [kernels.make(name, task.network, gen) for name in kernels.parse(self.kernels)]
        found = solve(syn.x, task.data, named, self.ridge, self.batch)
        gap = soft(syn.y, task.classes) - (found.labels + 1 / task.classes).to(syn.y)
        metrics = {"kernel_loss": found.loss, "jitter": torch.tensor(found.jitter)}
        return Loss(gap.square().sum() / 2, state, metrics)


@torch.no_grad()
def solve(x: Tensor, data: Data, named: list[Kernel], ridge: float, batch: int = 4096) -> Solution:
    """The optimal labels for ``x``; memory does not grow with the number of real examples."""
    require_room(len(x))
    found, jitter = torch.zeros(0, len(x) + data.classes, dtype=torch.float64, device=x.device), 0.0
    for kernel in named:
        lower, more = factorise(kernel(x, x), ridge)
        jitter = max(jitter, more)
        for part in torch.arange(len(data), device=x.device).split(batch):
            rows = torch.cholesky_solve(kernel(x, data.spec.dense(data.x[part])), lower).T
            wanted = targets(data.y[part], data.classes)
            # The factor R of a QR factorisation of all rows [A, y] so far is sufficient for least squares.
            found = torch.linalg.qr(torch.cat([found, torch.cat([rows, wanted], 1)]), mode="r").R
    a, y = found.split([len(x), data.classes], 1)
    labels = torch.linalg.pinv(a) @ y
    return Solution(labels, (y - a @ labels).square().sum() / (2 * len(data) * len(named)), jitter)
