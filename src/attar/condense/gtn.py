"""Generative teaching networks."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.contract import Condenser, Descent, Inference, Loss, NoState, Task
from attar.condense.dd import by_turns, take
from attar.condense.generator import Curriculum, Teacher
from attar.condense.source import Source, Synthetic
from attar.condense.trajectory import Look, require_finite, train_through
from attar.core.registry import condenser
from attar.data import Data
from attar.infer.unrolled import curriculum
from attar.nets.objective import Objective


@condenser(
    "gtn",
    about="a generator that teaches",
    choose="many examples, few steps",
    takes="30 min",
    paper="Such, Rawal, Lehman, Stanley & Clune, Generative Teaching Networks, ICML 2020",
    learns="a generator, its inputs, the inner learning rate and momentum",
    cost="second derivatives through epochs × batches steps, a pass of the generator, and a real batch",
)
@dataclass(frozen=True)
class GTN(Condenser):
    r"""Learn a generator whose examples train a new network well in a few steps.

    .. math:: \min_{G, z, \eta, \mu} \; E_{\theta_0} \; L(T; \theta_N), \quad
        v_{s+1} = \mu v_s + \nabla L(G(z_s, y_s); \theta_s), \quad \theta_{s+1} = \theta_s - \eta v_{s+1}

    ``curriculum`` says what is learnt of the order: with ``noise``, inputs z are random every time; ``all-shuffled``
    learns them and puts them into batches at random; ``shuffled-batches`` learns batches in random order; ``full``
    learns the whole order.
    """

    curriculum: Curriculum = Field(
        default="full", description="what is learnt of the order: noise, all-shuffled, shuffled-batches or full"
    )
    epochs: int = Field(default=1, ge=1, description="times that training goes through the batches")
    batches: int | None = Field(
        default=None, ge=1, description="batches of an epoch; one example per class in each if not set"
    )
    batch: int = Field(default=512, ge=1, description="real examples a step")
    step_size: float = Field(default=0.02, gt=0, description="inner learning rate to start from")
    net_momentum: float = Field(default=0.5, gt=0, lt=1, description="inner momentum to start from")
    latent: int = Field(default=64, ge=1, description="numbers in an input z of the generator")
    width: int = Field(default=32, ge=1, description="width of the generator")
    weight_norm: bool = Field(
        default=True,
        description="whether the generator's weights are normalised, g V / |V|; "
        "the network's are if its name says so, as in convnet-d3w32-weightnorm",
    )

    descent: ClassVar[Descent] = Descent(steps=1000, optimiser="adam", lr=0.002, scalar_lr=0.02, schedule="cosine")

    @property
    def inference(self) -> Inference:
        """The learnt steps themselves."""
        options = {"rates": (self.step_size,), "net_momentum": self.net_momentum, "batches": self.batches}
        return Inference("unrolled", options)

    def source(self, start: Data, gen: Generator) -> Source:
        ordered = start[by_turns(start)]
        steps = self.epochs * len(curriculum(ordered, self.batches))
        rest = self.latent, self.width, self.step_size, self.net_momentum, self.weight_norm
        return Teacher(ordered, self.curriculum, steps, *rest, gen)

    def loss(self, syn: Synthetic, state: NoState, task: Task, gen: Generator) -> Loss:
        rates, momentum, objective = syn.scalars["rates"], syn.scalars["net_momentum"], Objective(task.network)
        order = self._order(syn, gen)
        looks: list[Look] = [partial(take, order[number % len(order)]) for number in range(len(rates))]
        real, start = task.data.sample(self.batch, gen), task.network.init(gen).to(task.data.device)
        reached = train_through(objective, start, syn, rates, looks, momentum)
        value = require_finite(objective.value(reached, real), rates, len(rates))
        return Loss(value, state, {"step_size": rates[0].detach(), "momentum": momentum.detach()})

    def _order(self, syn: Data, gen: Generator) -> list[Tensor]:
        """Places of the examples of every batch, in the order of this step's training."""
        parts = curriculum(syn, self.batches)
        if self.curriculum == "all-shuffled":
            shuffled = torch.randperm(len(syn), generator=gen, device=gen.device).to(syn.device)
            return [shuffled[part] for part in parts]
        if self.curriculum == "shuffled-batches":
            return [parts[i] for i in torch.randperm(len(parts), generator=gen, device=gen.device).tolist()]
        return parts
