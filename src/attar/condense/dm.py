"""Distribution matching."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.contract import Condenser, Descent, Loss, Needs, NoState, Task
from attar.condense.matching import pairs
from attar.core.registry import condenser
from attar.data import Data, augment
from attar.nets import Network, in_parts


@condenser(
    "dm",
    about="matches mean features",
    choose="choose it first, cheap",
    takes="20 min",
    paper="Zhao & Bilen, Dataset Condensation with Distribution Matching, WACV 2023",
    learns="pixels",
    cost="one forward pass of a real batch per class, one forward and backward of the synthetic examples",
)
@dataclass(frozen=True)
class DM(Condenser):
    r"""Match the mean features of real and synthetic examples under random networks.

    .. math:: \min_S \; E_{\theta \sim p_0, \omega \sim \Omega}
        \sum_c \Big\| \tfrac{1}{|T_c|} \sum_{x \in T_c} \phi_\theta(A_\omega(x))
                    - \tfrac{1}{|S_c|} \sum_{s \in S_c} \phi_\theta(A_\omega(s)) \Big\|^2

    The learning rate is that for width 128, and is multiplied by (128 / width)^0.7 for ConvNets of other widths, whose
    gradients of images are smaller or larger by about that (docs/condensation.md).
    """

    needs: ClassVar[Needs] = Needs(features=True)

    batch: int = Field(default=256, ge=1, description="real examples per class and step")
    strategy: str | None = Field(
        default=None, description="siamese augmentations, one drawn per class; the paper's for images if not set"
    )

    descent: ClassVar[Descent] = Descent(steps=1000, lr=1.0, momentum=0.5)
    growth: ClassVar[float] = 0.7
    shares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        augment.parse(self.strategy or "none")

    def loss(self, syn: Data, state: NoState, task: Task, gen: Generator) -> Loss:
        strategy = augment.resolve(self.strategy, syn.spec)
        theta = task.network.init(gen)
        total = syn.x.new_zeros(())
        for real, fake in pairs(syn, task, self.batch, strategy, gen):
            gap = _real_mean(task.network, theta, real.x) - task.network.features(theta, fake.x).mean(0)
            total = total + gap.square().sum()
        return Loss(total, state, {"gap": task.share.total(total.detach()) / task.classes})


@torch.no_grad()
def _real_mean(network: Network, theta: Tensor, x: Tensor) -> Tensor:
    """Mean features of real examples, without a gradient."""
    return torch.cat([network.features(theta, part) for part in in_parts(network, x)]).mean(0)
