"""Mnemonics: exemplars of class-incremental learning."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.contract import Condenser, Descent, Inference, Loss, Task
from attar.condense.source import Pixels, Source, Synthetic
from attar.condense.trajectory import Look, require_finite, train_through
from attar.core.registry import condenser
from attar.data import Data
from attar.nets import Network
from attar.nets.objective import Objective
from attar.nets.train import Training, train


class Phase(NamedTuple):
    """The network of this phase, ``(p,)``."""

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

    from the network :math:`\theta_i` of the phase, which is trained on the data first (model level); a temporary copy
    of it takes the steps (exemplar level). Class-incremental learning gives its own network instead, and lets
    ``adjust`` fit the exemplars of earlier phases to it.
    """

    net_steps: int = Field(default=10, ge=1, description="steps of the temporary network, N")
    step_size: float = Field(default=0.01, gt=0, description="learning rate of the temporary network, α")
    batch: int = Field(default=512, ge=1, description="real examples a step")
    model_steps: int = Field(default=500, ge=1, description="training steps of the network of the phase")

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
        return Phase(train(task.network, task.data, Training(steps=self.model_steps), gen)[0])

    def loss(self, syn: Synthetic, state: Phase, task: Task, gen: Generator) -> Loss:
        real = task.data.sample(self.batch, gen)
        value = self.validation(task.network, state.theta, syn, real)
        return Loss(value, state, {})

    def validation(self, network: Network, theta: Tensor, exemplars: Data, data: Data) -> Tensor:
        """The loss on data of the temporary network, differentiable in the exemplars."""
        objective, rate = Objective(network), torch.tensor(self.step_size, device=theta.device)
        looks: list[Look] = [lambda seen: seen] * self.net_steps
        reached = train_through(objective, theta, exemplars, rate, looks)
        return require_finite(objective.value(reached, data), rate, self.net_steps)


def adjust(
    memory: Data, network: Network, theta: Tensor, method: Mnemonics, steps: int, lr: float, gen: Generator
) -> Data:
    r"""Fit old exemplars to the network of a new phase, each half validated on the other.

    .. math:: E^A \leftarrow E^A - \beta \nabla L(E^B; \theta'(E^A)), \quad
        E^B \leftarrow E^B - \beta \nabla L(E^A; \theta'(E^B))

    Args:
        memory: The exemplars of earlier phases.
        network: What ``theta`` are the parameters of.
        theta: The network of the new phase, ``(p,)``.
        method: Gives the steps of the temporary network.
        steps: Updates of each half.
        lr: The learning rate :math:`\beta`.
        gen: Draws the halves.
    """
    order = torch.randperm(len(memory), generator=gen, device=gen.device).to(memory.device)
    halves, x = order.tensor_split(2), memory.x.clone()
    for _ in range(steps):
        for ours, other in (halves, halves[::-1]):
            moving = x[ours].requires_grad_()
            seen = replace(memory[ours], x=moving)
            value = method.validation(network, theta, seen, replace(memory[other], x=x[other]))
            x[ours] = moving.detach() - lr * torch.autograd.grad(value, moving)[0]
    return replace(memory, x=x)
