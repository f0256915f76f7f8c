"""Train networks on a set of examples: several at once, one vector of parameters each."""

from __future__ import annotations

from math import cos, pi
from typing import Literal

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.func import grad_and_value, vmap

from attar.data import Data
from attar.data.augment import jitter, parse
from attar.errors import AttarError
from attar.nets.losses import losses
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
    loss: str = Field(default="cross-entropy", description="cross-entropy, focal-2, multi-margin or squared")

    def __post_init__(self) -> None:
        parse(self.augment)
        losses(self.loss)


def loss(logits: Tensor, y: Tensor, weights: Tensor, name: str = "cross-entropy") -> Tensor:
    """Weighted mean of a loss; ``y`` may be hard or soft, ``weights`` have mean one over the whole set."""
    return (weights * losses(name)(logits, y)).mean()


class Objective:
    """The mean weighted loss of a data set, for several parameter vectors at once under ``vmap``.

    Small networks on few examples spend most of a step on overhead, which the vectors then share. Each vector sees
    its own minibatch, unless all examples fit into one.

    Args:
        network: What the vectors are parameters of.
        data: Hard or soft labels, with or without weights (which count relative to their mean).
        batch: Examples a minibatch.
        augment: Augmentation of every minibatch.
        loss: Which loss, by name.
    """

    def __init__(
        self, network: Network, data: Data, batch: int, augment: str = "none", loss: str = "cross-entropy"
    ) -> None:
        self.network, self.data, self.batch, self.augment, self.loss = network, data, batch, augment, loss
        self.weights = data.x.new_ones(len(data)) if data.weights is None else data.weights / data.weights.mean()

    def gradient(self, theta: Tensor, gen: Generator) -> tuple[Tensor, Tensor]:
        """Gradients ``(k, p)`` and values ``(k,)`` of one minibatch for each row of ``theta``."""
        if len(self.data) <= self.batch and self.augment == "none":
            step = vmap(grad_and_value(self._loss), in_dims=(0, None, None, None))
            g, value = step(theta, self.data.x, self.data.y, self.weights)
            return g, value
        index = torch.stack([self._minibatch(gen) for _ in theta])
        x = jitter(self.augment, self.data.x[index].flatten(0, 1), gen).unflatten(0, index.shape)
        g, value = vmap(grad_and_value(self._loss))(theta, x, self.data.y[index], self.weights[index])
        return g, value

    def value(self, theta: Tensor) -> Tensor:
        """Values ``(k,)`` over all examples, ``batch`` at a time."""
        total = theta.new_zeros(len(theta))
        for part in torch.arange(len(self.data), device=theta.device).split(self.batch):
            one = vmap(self._loss, in_dims=(0, None, None, None))
            total = total + one(theta, self.data.x[part], self.data.y[part], self.weights[part]) * len(part)
        return total / len(self.data)

    def _minibatch(self, gen: Generator) -> Tensor:
        return torch.randperm(len(self.data), generator=gen, device=gen.device)[: self.batch]

    def _loss(self, theta: Tensor, x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
        return loss(self.network(theta, x), y, weights, self.loss)


def train(
    network: Network, data: Data, training: Training, gen: Generator, draws: int = 1, start: Tensor | None = None
) -> Tensor:
    """Train ``draws`` networks, each with its own batches, from the prior or from ``start``; returns ``(draws, p)``."""
    theta = torch.stack([network.init(gen) for _ in range(draws)]) if start is None else start.clone()
    objective = Objective(network, data, training.batch, training.augment, training.loss)
    optimiser = _optimiser(theta, training)
    for step in range(training.steps):
        optimiser.param_groups[0]["lr"] = rate(training.lr, training.schedule, step, training.steps)
        theta.grad, value = objective.gradient(theta.detach(), gen)
        optimiser.step()
        if not bool(torch.isfinite(value).all()):
            raise AttarError(f"Training diverged at step {step}: try a smaller learning rate than {training.lr}.")
    if not bool(torch.isfinite(theta).all()):
        raise AttarError(f"Training diverged at its last step: try a smaller learning rate than {training.lr}.")
    return theta.detach()


def rate(start: float, schedule: str, step: int, steps: int) -> float:
    """The learning rate of one step: constant, or half a cosine from ``start`` to zero."""
    return start if schedule == "constant" else start * (1 + cos(pi * step / steps)) / 2


def _optimiser(theta: Tensor, training: Training) -> torch.optim.Optimizer:
    theta.requires_grad_()
    if training.optimiser == "sgd":
        return torch.optim.SGD([theta], training.lr, training.momentum, weight_decay=training.weight_decay)
    return torch.optim.Adam([theta], training.lr, weight_decay=training.weight_decay)
