"""Train networks on a set of examples: several at once, one vector of parameters each."""

from __future__ import annotations

from math import cos, pi
from typing import Literal

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.func import grad_and_value, vmap
from torch.nn.functional import cross_entropy

from attar.data import Data
from attar.data.augment import jitter
from attar.errors import AttarError
from attar.nets.network import Network


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Training:
    """A training budget; rows of one table share it."""

    steps: int = Field(default=300, ge=1, description="gradient steps for each network")
    batch: int = Field(default=256, ge=1, description="examples a step; all of them where there are fewer")
    optimiser: Literal["sgd", "adam"] = Field(default="sgd", description="sgd (with momentum) or adam")
    lr: float = Field(default=0.05, gt=0, description="learning rate at the start")
    momentum: float = Field(default=0.9, ge=0, lt=1, description="momentum of sgd")
    weight_decay: float = Field(default=5e-4, ge=0, description="L2 penalty, that is, a Gaussian prior")
    schedule: Literal["constant", "cosine"] = Field(default="cosine", description="how the learning rate goes down")
    augment: str = Field(default="none", description="augmentation of every batch, e.g. crop-flip-rotate")


def loss(logits: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean cross-entropy; ``y`` may be hard or soft, ``weights`` have mean one over the whole set."""
    return (weights * cross_entropy(logits, y, reduction="none")).mean()


def train(network: Network, data: Data, training: Training, gen: Generator, draws: int = 1) -> Tensor:
    """Train ``draws`` networks from the prior, each with its own batches; returns ``(draws, p)``.

    Small networks on few examples spend most of a step on overhead, so they share it under ``vmap``.
    """
    theta = torch.stack([network.init(gen) for _ in range(draws)])
    weights = data.x.new_ones(len(data)) if data.weights is None else data.weights / data.weights.mean()
    optimiser = _optimiser(theta, training)
    gradient = vmap(grad_and_value(lambda t, x, y, w: loss(network(t, x), y, w)))
    for step in range(training.steps):
        optimiser.param_groups[0]["lr"] = rate(training.lr, training.schedule, step, training.steps)
        index = torch.stack([_batch(len(data), training.batch, gen) for _ in range(draws)])
        x = jitter(training.augment, data.x[index].flatten(0, 1), gen).unflatten(0, index.shape)
        theta.grad, value = gradient(theta.detach(), x, data.y[index], weights[index])
        optimiser.step()
        if not bool(torch.isfinite(value).all()):
            raise AttarError(f"Training diverged at step {step}: try a smaller learning rate than {training.lr}.")
    if not bool(torch.isfinite(theta).all()):
        raise AttarError(f"Training diverged at its last step: try a smaller learning rate than {training.lr}.")
    return theta.detach()


def rate(start: float, schedule: str, step: int, steps: int) -> float:
    """The learning rate of one step: constant, or half a cosine from ``start`` to zero."""
    return start if schedule == "constant" else start * (1 + cos(pi * step / steps)) / 2


def _batch(n: int, size: int, gen: Generator) -> Tensor:
    return torch.randperm(n, generator=gen, device=gen.device)[:size]


def _optimiser(theta: Tensor, training: Training) -> torch.optim.Optimizer:
    theta.requires_grad_()
    if training.optimiser == "sgd":
        return torch.optim.SGD([theta], training.lr, training.momentum, weight_decay=training.weight_decay)
    return torch.optim.Adam([theta], training.lr, weight_decay=training.weight_decay)
