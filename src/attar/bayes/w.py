"""Bayesian pseudo-coresets by the Wasserstein distance."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.bayes.energy import check
from attar.condense.contract import Condenser, Descent, Inference, Loss, Needs, NoState, Task
from attar.condense.source import Pixels, Source, Synthetic
from attar.condense.trajectory import distance, looks, require_finite, stretch, train_through
from attar.core.registry import pseudo_coreset
from attar.data import Data, augment
from attar.nets.objective import Objective


@pseudo_coreset(
    "bpc-w",
    about="Wasserstein distance, experts",
    choose="to study divergences",
    takes="30 min",
    paper="Kim, Choi, Lee, Lee, Lee & Ha, On Divergence Measures for Bayesian Pseudocoresets, NeurIPS 2022",
    learns="pixels and the step size",
    cost="second derivatives through net_steps passes of the synthetic examples, and experts once",
)
@dataclass(frozen=True)
class BPCW(Condenser):
    r"""Match the parameters after training on the examples to those of experts trained on the full data.

    .. math:: \min_{\tilde x, \eta} \;
        \frac{\|\hat\theta_{t+N} - \theta^*_{t+M}\|^2}{\|\theta^*_t - \theta^*_{t+M}\|^2}, \quad
        \hat\theta_{s+1} = \hat\theta_s - \eta \nabla E(\tilde x, \hat\theta_s), \quad \hat\theta_t = \theta^*_t

    which is, up to a constant, the squared 2-Wasserstein distance between Gaussians of equal width around both ends.
    The step size :math:`\eta` is learnt as :math:`e^{\log \eta}`. Memory grows with :math:`\sqrt N`, not N.
    """

    net_steps: int = Field(default=10, ge=1, description="steps on the synthetic examples, N")
    ahead: float | None = Field(
        default=None, gt=0, description="epochs from the start to the target of an expert, M; 40 steps if not set"
    )
    max_epoch: float | None = Field(default=0.0, ge=0, description="last epoch to start from; any if not set")
    step_size: float = Field(default=0.1, gt=0, description="step size to start from")
    energy: str = Field(default="cross-entropy", description="cross-entropy, focal-2 or multi-margin")
    strategy: str | None = Field(default=None, description="augmentation of every image; the paper's if not set")

    descent: ClassVar[Descent] = Descent(steps=450, optimiser="adam", lr=0.05, schedule="cosine", scalar_lr=0.02)
    needs: ClassVar[Needs] = Needs(experts=True)
    whole: ClassVar[str] = "a step has one pair of an expert's parameters and one training between them"

    @property
    def inference(self) -> Inference:
        """Plain gradient descent, as in the objective."""
        return Inference(training={"momentum": 0.0, "schedule": "constant"})

    def source(self, start: Data, gen: Generator) -> Source:
        return Pixels(start, scalars={"step_size": self.step_size})

    def __post_init__(self) -> None:
        check(self.strategy, self.energy)

    def init(self, task: Task, gen: Generator) -> NoState:
        stretch(task, self.ahead, self.max_epoch, torch.Generator())  # raises if the experts have too few epochs
        return NoState()

    def loss(self, syn: Synthetic, state: NoState, task: Task, gen: Generator) -> Loss:
        strategy = augment.resolve(self.strategy, syn.spec)
        start, target, place = stretch(task, self.ahead, self.max_epoch, gen)
        seen, size = looks(strategy, [None] * self.net_steps, gen), syn.scalars["step_size"]
        reached = train_through(Objective(task.network, self.energy), start, syn, size, seen)
        gap = require_finite(distance(reached, target, start), size, self.net_steps)
        return Loss(gap, state, {"step_size": size.detach(), **place})
