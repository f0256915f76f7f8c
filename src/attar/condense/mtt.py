"""Dataset distillation by matching training trajectories."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.contract import Condenser, Descent, Inference, Loss, Needs, NoState, Task
from attar.condense.source import Pixels, Source, Synthetic
from attar.condense.trajectory import Look, distance, looks, require_finite, stretch, train_through
from attar.core.registry import condenser
from attar.data import Data, augment
from attar.nets.objective import Objective


@condenser(
    "mtt",
    about="matches training trajectories",
    choose="well calibrated",
    takes="2 h",
    paper="Cazenavette, Wang, Torralba, Efros & Zhu, Dataset Distillation by Matching Training Trajectories, CVPR 2022",
    learns="pixels and the step size, labels on request",
    cost="second derivatives through net_steps passes of a synthetic batch, and experts once",
)
@dataclass(frozen=True)
class MTT(Condenser):
    r"""Match the parameters after training on minibatches of the examples to those of experts trained on the full data.

    .. math:: \min_{S, \eta} \; \frac{\|\hat\theta_{t+N} - \theta^*_{t+M}\|^2}{\|\theta^*_t - \theta^*_{t+M}\|^2}, \quad
        \hat\theta_{s+1} = \hat\theta_s - \eta \nabla L(A_\omega(b_s); \hat\theta_s), \quad
        b_s \subset S, \; \hat\theta_t = \theta^*_t

    The objective and the learnt step size :math:`\eta = e^{\log \eta}` are those of ``bpc-w``, which interprets the
    distance as one between posteriors. The inner training differs: here :math:`b_s` are minibatches of S, reshuffled
    every epoch; there every step uses all examples. Both augment every example independently. Memory grows with
    :math:`\sqrt N`, not N.
    """

    net_steps: int = Field(default=50, ge=1, description="steps on the synthetic examples, N")
    ahead: float = Field(default=1.0, gt=0, description="epochs from the start to the target of an expert, M")
    max_epoch: float | None = Field(default=0.0, ge=0, description="last epoch to start from; any if not set")
    minibatch: int | None = Field(default=None, ge=1, description="synthetic examples per step; all if not set")
    step_size: float = Field(default=0.05, gt=0, description="step size to start from")
    labels: Literal["hard", "soft"] = Field(default="hard", description="hard labels, or learnt soft labels")
    strategy: str | None = Field(
        default=None, description="augmentation of minibatches; the paper's for images if not set"
    )

    descent: ClassVar[Descent] = Descent(steps=1000, optimiser="adam", lr=0.03, schedule="cosine", scalar_lr=0.02)
    inference: ClassVar[Inference] = Inference(training={"momentum": 0.0, "schedule": "constant"})
    needs: ClassVar[Needs] = Needs(experts=True)

    def __post_init__(self) -> None:
        augment.parse(self.strategy or "none")

    def source(self, start: Data, gen: Generator) -> Source:
        return Pixels(start, self.labels, {"step_size": self.step_size})

    def init(self, task: Task, gen: Generator) -> NoState:
        stretch(task, self.ahead, self.max_epoch, torch.Generator())  # raises if the experts have too few epochs
        return NoState()

    def loss(self, syn: Synthetic, state: NoState, task: Task, gen: Generator) -> Loss:
        start, target, place = stretch(task, self.ahead, self.max_epoch, gen)
        size = syn.scalars["step_size"]
        reached = train_through(Objective(task.network), start, syn, size, self._looks(syn, gen))
        gap = require_finite(distance(reached, target, start), size, self.net_steps)
        return Loss(gap, state, {"step_size": size.detach(), **place})

    def _looks(self, syn: Data, gen: Generator) -> list[Look]:
        """The augmented minibatch of every step."""
        batch = min(self.minibatch or len(syn), len(syn))
        order: list[Tensor] = []
        chosen: list[Tensor | None] = []
        for _ in range(self.net_steps):
            if not order:
                shuffled = torch.randperm(len(syn), generator=gen, device=gen.device).to(syn.x.device)
                order = list(shuffled.split(batch))
            chosen.append(order.pop())
        return looks(augment.resolve(self.strategy, syn.spec), chosen, gen)
