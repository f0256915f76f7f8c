"""Training by a learnt curriculum."""

from __future__ import annotations

from itertools import cycle
from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.errors import AttarError, Diverged
from attar.core.registry import sampler
from attar.data import Data
from attar.infer.contract import Draws, Sampler
from attar.nets import Network
from attar.nets.learner import SGD
from attar.nets.objective import Objective
from attar.nets.train import Training

Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@sampler(
    "unrolled",
    about="the steps that dd learnt, in order",
    choose="for coresets of dd, sldd, tdd and gtn",
    takes="1 s",
    paper="Wang, Zhu, Torralba & Efros, Dataset Distillation, 2018",
    cost="one gradient of a batch per learnt rate and draw",
)
@dataclass(frozen=True)
class Unrolled(Sampler):
    r"""Gradient descent on the batches of a curriculum in their order, each step at its own learnt rate.

    .. math:: v_{s+1} = \mu v_s + \nabla L(b_{s \bmod B}; \theta_s), \quad
        \theta_{s+1} = \theta_s - \eta_s v_{s+1}, \quad \theta_0 \sim p_0

    Draws differ in their initial weights. Of the training settings, only the loss is used, unless rates are not set.
    """

    rates: tuple[Rate, ...] | None = Field(
        default=None, description="learning rate of every step; the training's rate and steps if not set"
    )
    batches: int | None = Field(
        default=None,
        ge=1,
        description="batches of the examples, in order; one example per class in each if not set",
    )
    momentum: float = Field(default=0.0, ge=0, lt=1, description="momentum, μ")
    init_seed: int | None = Field(
        default=None, ge=0, description="seed of the one initialisation to start from; a random one per draw if not set"
    )

    def infer(
        self, data: Data, network: Network, training: Training, draws: int, gen: Generator, start: Tensor | None = None
    ) -> Draws:
        if start is None and self.init_seed is not None:
            start = fixed(network, self.init_seed, data.device)[None]
        elif start is None:
            start = torch.stack([network.init(gen) for _ in range(draws)])
        objective, learner = Objective(network, training.loss), SGD(1.0, self.momentum)
        state = learner.init(start)
        rates = self.rates or (training.lr,) * training.steps
        for rate, part in zip(rates, cycle(curriculum(data, self.batches)), strict=False):
            state = learner.step(state, objective.gradient(state.theta, data[part]), rate)
        if not bool(torch.isfinite(state.theta).all()):
            raise Diverged(
                f"Training by the learnt rates {', '.join(f'{rate:.3g}' for rate in rates[:5])}, ... diverged on "
                f"{network.name}: use the network that the coreset was made for, or --sampler ensemble."
            )
        return Draws(network, state.theta, data.spec)


def fixed(network: Network, seed: int, device: torch.device) -> Tensor:
    """The one initialisation of this seed, ``(p,)``, the same on every device."""
    return network.init(torch.Generator().manual_seed(seed)).to(device)


def curriculum(data: Data, batches: int | None) -> list[Tensor]:
    """Places of the examples of every batch, in the order of training."""
    count = max(1, len(data) // data.classes) if batches is None else batches
    if count > len(data):
        raise AttarError(f"{len(data)} examples cannot be divided into {count} batches: set batches to fewer.")
    return list(torch.arange(len(data), device=data.device).tensor_split(count))
