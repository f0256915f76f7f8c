"""Condensation by matching the curvature of the loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.nn.functional import linear

from attar.condense.contract import Descent, Inference, Needs, Task
from attar.condense.dsa import DSA
from attar.condense.matching import Pair
from attar.condense.source import Mosaic, Pixels, Source
from attar.core.forecast import Order
from attar.core.registry import condenser
from attar.data import Data, augment
from attar.data.data import soft
from attar.nets import Network
from attar.nets.layers import with_ones

STRATEGY, MATCHES = "color-crop-cutout", 100  # settings of the efficient parameterisation that the paper builds on


@condenser(
    "lcmat-c",
    about="matches gradients and variance",
    choose="with much time",
    takes="11 h",
    paper="Shin, Bae, Shin, Joo & Moon, Loss-Curvature Matching for Dataset Selection and Condensation, AISTATS 2023",
    learns="pixels",
    cost="as dsa, one more forward pass of every batch, and training on the real data",
)
@dataclass(frozen=True)
class LCMatC(DSA):
    r"""Match the mean of each class's gradients, and their variance, which approximates the curvature of the loss.

    .. math:: \min_S \; E_{\theta_0} \sum_k \sum_c
        D\big(\bar g^{T_c}_{\theta_k}, \bar g^{S_c}_{\theta_k}\big)
        + \tfrac\rho2 \big\|\mathrm{Var}(G^{T_c}_{\theta_k}) - \mathrm{Var}(G^{S_c}_{\theta_k})\big\|_1, \quad
        \theta_{t+1} = \theta_t - \eta\, \bar g^T_{\theta_t}

    with the distance D of ``dc``, siamese augmentation, and element-wise variances of the last layer's gradients. The
    network is trained on the real data, and a new one is drawn after ``matches``. With one example per class there is
    no variance, and only gradients are matched. With ``factor`` = f every stored image is a mosaic of f² examples, so
    that there are f² ``per_class`` of them.
    """

    needs: ClassVar[Needs] = Needs(linear=True)

    matches: int | None = Field(default=None, ge=1, description="matches before a new network; 100 if not set")
    net_steps: int | None = Field(
        default=None, ge=0, description="network steps on real batches between matches; one epoch if not set"
    )
    strategy: str | None = Field(
        default=None, description=f"siamese augmentations, one after the other; {STRATEGY} for images if not set"
    )
    rho: float = Field(default=0.1, ge=0, description="weight of the variances; 0 matches only gradients")
    factor: int = Field(default=1, ge=1, le=8, description="examples along each side of a stored image")

    descent: ClassVar[Descent] = Descent(steps=1000, lr=0.1, momentum=0.5)
    growth: ClassVar[float] = 0.0  # the learning rate was chosen here, for small widths
    mode: ClassVar[str] = "all"

    @property
    def inference(self) -> Inference:
        """Training without augmentation, as for ``dc``."""
        return Inference()

    @property
    def grows(self) -> Order:
        return Order()

    def starts(self, per_class: int) -> int:
        return per_class * self.factor**2

    def source(self, start: Data, gen: Generator) -> Source:
        return Mosaic(start, factor=self.factor) if self.factor > 1 else Pixels(start)

    def _strategy(self, syn: Data) -> str:
        return augment.resolve(self.strategy, syn.spec, STRATEGY)

    def _loops(self, syn: Data, task: Task) -> tuple[int, int]:
        epoch = max(1, len(task.data) // self.batch)
        return self.matches or MATCHES, epoch if self.net_steps is None else self.net_steps

    def _batches(self, syn: Data, task: Task, steps: int, gen: Generator) -> Iterable[Data]:
        strategy, data = self._strategy(syn), replace(task.data, weights=None)
        drawn = (data.sample(self.batch, gen) for _ in range(steps))
        return (batch.map(lambda x: augment.jitter(strategy, x, gen, self.mode)) for batch in drawn)

    def _gap(self, theta: Tensor, matched: list[Pair], task: Task) -> tuple[Tensor, dict[str, Tensor]]:
        gap, _ = super()._gap(theta, matched, task)
        curvature = torch.zeros_like(gap)
        for real, fake in matched:
            if self.rho and min(len(real), len(fake)) > 1:
                with torch.no_grad():
                    wanted = variance(task.network, theta, real)
                curvature = curvature + (wanted - variance(task.network, theta, fake)).abs().sum().to(gap)
        return gap + self.rho / 2 * curvature, {"gradient": gap.detach(), "curvature": curvature.detach()}


def variance(network: Network, theta: Tensor, data: Data) -> Tensor:
    r"""Variance of the last layer's gradients :math:`g_i = r_i \otimes [h_i, 1]`, ``(classes, h + 1)``, without
    building them.

    .. math:: \mathrm{Var}(G) = \tfrac{1}{n-1} \Big((R^2)^\top [H, 1]^2 - \tfrac1n (R^\top [H, 1])^2\Big)
    """
    features = network.features(theta, data.x)
    logits = linear(features, *network.head(theta))
    left = (logits.softmax(1) - soft(data.y, network.classes)).double()
    right = with_ones(features, network.head_index().shape[1]).double()
    n = len(data)
    return (left.square().T @ right.square() - (left.T @ right).square() / n) / (n - 1)
