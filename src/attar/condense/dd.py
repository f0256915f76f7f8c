"""Dataset distillation."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.contract import Condenser, Descent, Inference, Loss, Needs, NoState, Task
from attar.condense.source import Labels, Pixels, Source, Synthetic
from attar.condense.trajectory import Look, require_finite, train_through
from attar.core.registry import condenser
from attar.data import Data
from attar.infer.unrolled import curriculum, fixed
from attar.nets.losses import losses
from attar.nets.objective import Objective

Start = Literal["random", "fixed", "random-pretrained", "fixed-pretrained"]


@condenser(
    "dd",
    about="learns a few training steps",
    choose="fixed start, few steps",
    takes="20 min",
    paper="Wang, Zhu, Torralba & Efros, Dataset Distillation, 2018",
    learns="pixels and the learning rate of every step",
    cost="second derivatives through epochs × batches steps for each initialisation, and a real batch",
)
@dataclass(frozen=True)
class DD(Condenser):
    r"""Learn examples and learning rates with which a few gradient steps train a network.

    .. math:: \min_{S, \eta} \; E_{\theta_0} \; L(T; \theta_N), \quad
        \theta_{s+1} = \theta_s - \eta_s \nabla L(S_{s \bmod B}; \theta_s), \quad \eta_s = e^{\log \eta_s}

    The examples are divided into B batches, one for each step of an epoch; every step of every epoch has its own rate.
    The gradient goes through all N steps, in memory that grows with :math:`\sqrt N`. The initial weights are random
    (a new draw every time), or fixed, which is easier, but then a network must start from them; pretrained ones are the
    last epochs of the experts that are given, which may be of other data.
    """

    epochs: int = Field(default=3, ge=1, description="times that training goes through the batches")
    batches: int | None = Field(
        default=None, ge=1, description="batches of an epoch, B; one example per class in each if not set"
    )
    start: Start = Field(
        default="random", description="initial weights: random, fixed, random-pretrained or fixed-pretrained"
    )
    init_seed: int = Field(default=0, ge=0, description="seed of the fixed initial weights")
    inits: int = Field(default=4, ge=1, description="initial weights per step, where they are random")
    step_size: float = Field(default=0.02, gt=0, description="learning rate to start from")
    batch: int = Field(default=1024, ge=1, description="real examples a step")
    objective: str = Field(default="cross-entropy", description="loss of the inner steps and of the real batch")

    descent: ClassVar[Descent] = Descent(
        steps=1000, optimiser="adam", lr=0.01, schedule="cosine", init="noise", clip=10.0
    )
    needs: ClassVar[Needs] = Needs(pretrained=True)
    labels: ClassVar[Labels] = "hard"

    def __post_init__(self) -> None:
        losses(self.objective)

    @property
    def inference(self) -> Inference:
        """The learnt steps themselves, from the initial weights that they were learnt for."""
        options = {"rates": (self.step_size,), "batches": self.batches}
        seed = {"init_seed": self.init_seed} if self.start == "fixed" else {}
        return Inference("unrolled", {**options, **seed}, {"loss": self.objective})

    def source(self, start: Data, gen: Generator) -> Source:
        ordered = start[by_turns(start)]
        steps = self.epochs * len(curriculum(ordered, self.batches))
        return Pixels(ordered, self.labels, {"rates": [self.step_size] * steps})

    def init(self, task: Task, gen: Generator) -> Any:
        state = NoState()
        self._initial(state, task, torch.Generator())  # experts that are missing are named at once
        return state

    def loss(self, syn: Synthetic, state: Any, task: Task, gen: Generator) -> Loss:
        rates, objective = syn.scalars["rates"], Objective(task.network, self.objective)
        parts = curriculum(syn, self.batches)
        looks: list[Look] = [partial(take, parts[number % len(parts)]) for number in range(len(rates))]
        real, total = task.data.sample(self.batch, gen), syn.x.new_zeros(())
        inits = self.inits if self.start.startswith("random") else 1
        for _ in range(inits):
            reached = train_through(objective, self._initial(state, task, gen), syn, rates, looks)
            total = total + objective.value(reached, real) / inits
        return Loss(require_finite(total, rates, len(rates)), state, {"rate": rates.detach().mean()})

    def _initial(self, state: Any, task: Task, gen: Generator) -> Tensor:
        """The weights that training starts from, ``(p,)``."""
        if self.start == "random":
            return task.network.init(gen).to(task.data.device)
        if self.start == "fixed":
            return fixed(task.network, self.init_seed, task.data.device)
        experts = task.trajectories
        drawn = experts.draw(gen, first=experts.epochs) if self.start == "random-pretrained" else (0, experts.epochs)
        return experts.vector(*drawn).to(task.data.device)


def by_turns(data: Data) -> Tensor:
    """Places of the examples, so that the first of every class come first, then the second, and so on."""
    turn = torch.zeros_like(data.hard)
    for c in range(data.classes):
        members = data.hard == c
        turn[members] = torch.arange(int(members.sum()), device=turn.device)
    return torch.argsort(turn * data.classes + data.hard)


def take(part: Tensor, data: Data) -> Data:
    """The examples of one batch."""
    return data[part]
