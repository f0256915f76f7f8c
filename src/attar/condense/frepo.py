"""Neural feature regression with pooling."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.condense.contract import REGRESSION, Descent, Inference, Loss, Task
from attar.condense.kernels import factorise
from attar.condense.pool import Pool, Pooled
from attar.condense.source import Synthetic
from attar.core.registry import condenser
from attar.nets.losses import targets

RHO = 100.0  # the prior's precision in inference; the mean does not depend on it


@condenser(
    "frepo",
    about="regression on pool features",
    choose="vbpc without variance",
    takes="11 min",
    paper="Zhou, Nezhadarya & Ba, Dataset Distillation using Neural Feature Regression, NeurIPS 2022",
    learns="pixels and soft labels",
    cost="one forward pass of a real batch, two forward and backward passes of the synthetic examples",
)
@dataclass(frozen=True)
class FRePo(Pooled):
    r"""Learn examples from which ridge regression on a network's features predicts the real labels.

    .. math:: \min_S \; \tfrac{1}{2|B|} \Big\|\hat y_B - K_{BS} \Big(K_{SS} + \lambda \tfrac{\mathrm{tr} K_{SS}}{|S|} I
        \Big)^{-1} \hat y_S\Big\|^2 - \tfrac{1}{|S|} \sum_{i \in S} \min\big(y_{i(1)} - y_{i(2)}, \tfrac1C\big),
        \quad \hat y = y - \tfrac1C

    The kernel K has the inner products of features of a network from a pool, in float64. The network is then trained on
    S for one step, and replaced by a new one after ``net_steps`` steps. The last sum, as in the published code, keeps
    the largest entry :math:`y_{i(1)}` of a learnt label ahead of the second. This is ``vbpc`` without the variational
    part: no variance in the objective, and no learnt scale of logits.
    """

    batch: int = Field(default=1024, ge=1, description="real examples per step")
    staggered: bool = Field(default=True, description="spread the first replacements of networks evenly over time")
    ridge: float = Field(default=1e-6, gt=0, description="λ, in units of the kernel's mean diagonal")

    descent: ClassVar[Descent] = Descent(steps=2000, optimiser="adam", lr=9e-3, label_lr=3e-3, schedule="cosine")

    @property
    def inference(self) -> Inference:
        """Training as for the pool, then the regression itself."""
        options = {"rho": RHO, "gamma": RHO / self.ridge, "flips": self.flips}
        return Inference("last-layer-vi", options, {**REGRESSION, "lr": self.net_lr})

    def loss(self, syn: Synthetic, state: Pool, task: Task, gen: Generator) -> Loss:
        seen, state = self.look(syn, state, task, gen)
        lower, jitter = factorise(seen.phi @ seen.phi.T, self.ridge)
        said = seen.real @ (seen.phi.T @ torch.cholesky_solve(seen.targets, lower))
        aim = targets(seen.labels, task.classes)
        error = (said - aim).square().sum() / (2 * self.batch)
        first, second = syn.y.topk(2, 1).values.unbind(1)
        ahead = (first - second).clamp_max(1 / task.classes).mean()
        right = task.share.total((said.detach().argmax(1) == aim.argmax(1)).double().sum()) / self.batch
        metrics = {"batch_accuracy": right, "margin": ahead.detach(), "jitter": torch.tensor(jitter)}
        return Loss(error - ahead / task.share.size, state, metrics)
