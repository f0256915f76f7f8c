"""Train networks on a set of examples: several at once, one vector of parameters each."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi
from typing import Literal

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.data import Data
from attar.data.augment import parse
from attar.nets.losses import losses
from attar.nets.network import Network
from attar.nets.objective import Objective, loss

__all__ = ["Objective", "Trainer", "Training", "loss", "rate", "train"]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Training:
    """A training budget; rows of one table share it."""

    steps: int = Field(default=300, ge=1, description="gradient steps for each network")
    batch: int = Field(default=256, ge=1, description="examples per step, or all where there are fewer")
    optimiser: Literal["sgd", "adam"] = Field(default="sgd", description="optimiser; sgd has momentum")
    lr: float = Field(default=0.05, gt=0, description="learning rate at the start")
    momentum: float = Field(default=0.9, ge=0, lt=1, description="momentum of sgd")
    weight_decay: float = Field(
        default=5e-4, ge=0, description="L2 penalty on the parameters, that is, a Gaussian prior"
    )
    schedule: Literal["constant", "cosine"] = Field(default="cosine", description="schedule of the learning rate")
    augment: str = Field(default="none", description="augmentation of every batch, such as crop-flip-rotate")
    loss: str = Field(default="cross-entropy", description="loss: cross-entropy, focal-2, multi-margin or squared")

    def __post_init__(self) -> None:
        parse(self.augment)
        losses(self.loss)


class Trainer:
    """Networks on their way through training: ``theta``, ``(k, p)``, and what the optimiser remembers.

    Args:
        network: What is trained.
        data: What it is trained on.
        training: How.
        start: Where the ``k`` networks start; it is left as it is.
    """

    def __init__(self, network: Network, data: Data, training: Training, start: Tensor) -> None:
        self.training, self.number = training, 0
        self.objective = Objective(network, data, training.batch, training.augment, training.loss)
        self._theta = start.detach().clone()
        self._optimiser = _optimiser(self._theta, training)

    @property
    def theta(self) -> Tensor:
        """The parameters as they are now; the next step changes them."""
        return self._theta.detach()

    def step(self, gen: Generator, index: Tensor | None = None) -> Tensor:
        """One step on the examples ``index``, ``(k, b)``, or on minibatches of the trainer's own; returns losses."""
        lr = rate(self.training.lr, self.training.schedule, self.number, self.training.steps)
        self._optimiser.param_groups[0]["lr"] = lr
        found = self.objective.gradient(self.theta, gen) if index is None else self._at(index, gen)
        self._theta.grad, value = found
        self._optimiser.step()
        # The loss does not yet show what the last step did.
        after = self._theta if self.number == self.training.steps - 1 else value
        if not bool(torch.isfinite(value).all() & torch.isfinite(after).all()):
            raise AttarError(
                f"Training diverged at step {self.number}: try a smaller learning rate than {self.training.lr}."
            )
        self.number += 1
        return value

    def state(self) -> dict[str, Tensor]:
        """All that the next step needs, beside the generator."""
        slots = self._optimiser.state_dict()["state"].get(0, {})
        kept = {f"slot.{name}": value for name, value in slots.items() if isinstance(value, Tensor)}
        return {"theta": self.theta, "number": torch.tensor(self.number), **kept}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on where ``state`` was taken."""
        with torch.no_grad():
            self._theta.copy_(state["theta"])
        slots = {name.removeprefix("slot."): value for name, value in state.items() if name.startswith("slot.")}
        self._optimiser.load_state_dict({**self._optimiser.state_dict(), "state": {0: slots} if slots else {}})
        self.number = int(state["number"])

    def _at(self, index: Tensor, gen: Generator) -> tuple[Tensor, Tensor]:
        return self.objective.gradient_at(self.theta, index, gen)


def train(
    network: Network, data: Data, training: Training, gen: Generator, draws: int = 1, start: Tensor | None = None
) -> Tensor:
    """Train ``draws`` networks, each with its own batches, from the prior or from ``start``; returns ``(draws, p)``."""
    first = torch.stack([network.init(gen) for _ in range(draws)]) if start is None else start
    trainer = Trainer(network, data, training, first)
    for _ in range(training.steps):
        trainer.step(gen)
    return trainer.theta


def rate(start: float, schedule: str, step: int, steps: int) -> float:
    """The learning rate of one step: constant, or half a cosine from ``start`` to zero."""
    return start if schedule == "constant" else start * (1 + cos(pi * step / steps)) / 2


def _optimiser(theta: Tensor, training: Training) -> torch.optim.Optimizer:
    theta.requires_grad_()
    if training.optimiser == "sgd":
        return torch.optim.SGD([theta], training.lr, training.momentum, weight_decay=training.weight_decay)
    return torch.optim.Adam([theta], training.lr, weight_decay=training.weight_decay)
