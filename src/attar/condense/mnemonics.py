"""Mnemonics: exemplars of class-incremental learning."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.contract import Condenser, Descent, Inference, Loss, Needs, Task
from attar.condense.source import Pixels, Source, Synthetic
from attar.condense.trajectory import Look, require_finite, train_through
from attar.core.registry import condenser
from attar.data import Data
from attar.nets import Network
from attar.nets.objective import Objective
from attar.nets.train import Training, train


class Phase(NamedTuple):
    """The networks of this phase, ``(k, p)``; each step draws one."""

    theta: Tensor


@condenser(
    "mnemonics",
    about="exemplars for memory",
    choose="class-incremental learning",
    takes="10 min",
    paper="Liu, Su, Liu, Schiele & Sun, Mnemonics Training, CVPR 2020",
    learns="pixels",
    cost="second derivatives through net_steps passes of the exemplars, a real batch, and one training",
)
@dataclass(frozen=True)
class Mnemonics(Condenser):
    r"""Learn exemplars on which a few steps keep a trained network good on the data.

    .. math:: \min_E L(D; \theta'), \quad \theta' = \theta_i \text{ after } N \text{ steps }
        \theta \leftarrow \theta - \alpha \nabla L(E; \theta)

    from the network :math:`\theta_i` of the phase; a temporary copy of it takes the steps (exemplar level). In
    ``attar continual --regime finetune`` that is the network of the stage, trained with distillation on the memory and
    the new data (model level), with its outputs for the new classes. Elsewhere it is trained on the data first; few
    ``model_steps`` then teach the exemplars more, because little is left to learn from a trained network. Exemplars
    :math:`E = E^A \cup E^B` of earlier phases are adjusted to the new network, each half validated on the other.

    .. math:: E^A \leftarrow E^A - \beta \nabla L(E^B; \theta'(E^A)), \quad
        E^B \leftarrow E^B - \beta \nabla L(E^A; \theta'(E^B))
    """

    net_steps: int = Field(default=10, ge=1, description="steps of the temporary network, N")
    step_size: float = Field(default=0.01, gt=0, description="learning rate of the temporary network, α")
    batch: int = Field(default=512, ge=1, description="real examples a step")
    model_steps: int = Field(default=500, ge=1, description="training steps of the network, if none is given")
    adjust_steps: int = Field(default=50, ge=0, description="updates of old exemplars in a new phase; 0 keeps them")
    adjust_lr: float = Field(default=0.1, gt=0, description="learning rate of old exemplars, β")

    needs: ClassVar[Needs] = Needs(phase=True)
    descent: ClassVar[Descent] = Descent(steps=200, optimiser="adam", lr=0.01)

    @property
    def inference(self) -> Inference:
        """Training on the exemplars as on real examples."""
        return Inference()

    def source(self, start: Data, gen: Generator) -> Source:
        return Pixels(start)

    def init(self, task: Task, gen: Generator) -> Phase:
        if task.theta is not None:
            return Phase(task.theta)
        return Phase(train(task.network, task.data, Training(steps=self.model_steps), gen))

    def loss(self, syn: Synthetic, state: Phase, task: Task, gen: Generator) -> Loss:
        real = task.data.sample(self.batch, gen)
        drawn = torch.randint(len(state.theta), (), generator=gen, device=gen.device)
        return Loss(self.validation(task.network, state.theta[drawn], syn, real), state, {})

    def adjust(self, memory: Data, network: Network, theta: Tensor, gen: Generator) -> Data:
        order = torch.randperm(len(memory), generator=gen, device=gen.device).to(memory.device)
        order = order[memory.hard[order].argsort(stable=True)]  # by class, so that each class is in both halves
        halves, x = (order[::2], order[1::2]), memory.x.clone()
        for step in range(self.adjust_steps):
            for ours, other in (halves, halves[::-1]):
                moving = x[ours].requires_grad_()
                seen = replace(memory[ours], x=moving)
                value = self.validation(network, theta[step % len(theta)], seen, replace(memory[other], x=x[other]))
                x[ours] = moving.detach() - self.adjust_lr * torch.autograd.grad(value, moving)[0]
        return replace(memory, x=x)

    def validation(self, network: Network, theta: Tensor, exemplars: Data, data: Data) -> Tensor:
        """The loss on data of the temporary network, differentiable in the exemplars."""
        objective, rate = Objective(network), torch.tensor(self.step_size, device=theta.device)
        looks: list[Look] = [lambda seen: seen] * self.net_steps
        reached = train_through(objective, theta, exemplars, rate, looks)
        return require_finite(objective.value(reached, data), rate, self.net_steps)
