"""Train networks on a set of examples: several at once, one vector of parameters each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from math import cos, isfinite, pi
from typing import Literal

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.data import Data, Dataset
from attar.data.augment import parse
from attar.data.batches import Minibatches
from attar.nets.learner import SGD, Adam, Learner, State
from attar.nets.losses import losses
from attar.nets.network import Network
from attar.nets.objective import Energy, Objective
from attar.nets.rehearsal import Pace


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Training:
    """A training budget; rows of one table share it."""

    steps: int = Field(default=300, ge=1, description="gradient steps for each network")
    batch: int = Field(default=256, ge=1, description="examples per step, or all if there are fewer")
    optimiser: Literal["sgd", "adam"] = Field(default="sgd", description="optimiser; sgd has momentum")
    lr: float = Field(default=0.05, gt=0, description="learning rate at the start")
    momentum: float = Field(default=0.9, ge=0, lt=1, description="momentum of sgd")
    weight_decay: float = Field(
        default=5e-4, ge=0, description="L2 penalty on the parameters, that is, a Gaussian prior"
    )
    schedule: Literal["constant", "cosine", "step"] = Field(
        default="cosine", description="schedule of the learning rate; step divides it by ten after half of the steps"
    )
    augment: str = Field(default="none", description="augmentation of every batch, such as crop-flip-rotate")
    loss: str = Field(default="cross-entropy", description="loss: cross-entropy, focal-2, multi-margin or squared")

    def __post_init__(self) -> None:
        parse(self.augment)
        losses(self.loss)

    @property
    def learner(self) -> Learner:
        """The optimiser, at its first learning rate."""
        if self.optimiser == "sgd":
            return SGD(self.lr, self.momentum, self.weight_decay)
        return Adam(self.lr, weight_decay=self.weight_decay)


class Trainer:
    """Networks in training: parameters ``theta``, ``(k, p)``, and optimiser state.

    Args:
        network: The network.
        data: The training examples.
        training: The training settings.
        start: Initial parameters of the ``k`` networks; not modified.
    """

    def __init__(self, network: Network, data: Dataset, training: Training, start: Tensor) -> None:
        self.training, self.number = training, 0
        self.objective, self.learner = Objective(network, training.loss), training.learner
        self.batches = Minibatches(data, training.batch, training.augment)
        self._state = self.learner.init(start.detach().clone())
        self._pace = Pace.here(start.device)

    @property
    def theta(self) -> Tensor:
        """The parameters as they are now."""
        return self._state.theta

    def step(self, gen: Generator, index: Tensor | None = None) -> Tensor:
        """One step on the examples ``index``, ``(k, b)``, or on random minibatches; returns the losses, ``(k,)``."""
        return self._step(gen, index) if self._pace is None else self._pace.step(partial(self._step, gen, index))

    def _step(self, gen: Generator, index: Tensor | None) -> Tensor:
        batch = self.batches.draw(len(self.theta), gen) if index is None else self.batches.take(index, gen)
        values, slopes = self.objective.value_and_gradient(self.theta, batch)
        lr = rate(self.training.lr, self.training.schedule, self.number, self.training.steps)
        self._state = self.learner.step(self._state, slopes, lr)
        # The loss is from before the last step, so the parameters are checked too.
        last = self.number == self.training.steps - 1
        if not all(map(isfinite, values.tolist())) or (last and not bool(torch.isfinite(self.theta).all())):
            raise AttarError(
                f"Training diverged at step {self.number}: try a smaller learning rate than {self.training.lr}."
            )
        self.number += 1
        return values

    def state(self) -> dict[str, Tensor]:
        """Everything that the next step needs, except the generator."""
        return {**self._state._asdict(), "number": torch.tensor(self.number)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a saved ``state``."""
        found = State(*(state[name].to(self.theta.device) for name in State._fields))
        for name, old, new in zip(State._fields, self._state, found, strict=True):
            if old.shape != new.shape:
                raise ValueError(f"{name} has shape {tuple(new.shape)}, not {tuple(old.shape)}")
        self._state, self.number = found, int(state["number"])


def train(
    network: Network,
    data: Dataset,
    training: Training,
    gen: Generator,
    draws: int = 1,
    start: Tensor | None = None,
    average: float = 0.0,
) -> Tensor:
    r"""Train ``draws`` networks, each with its own batches, from the prior or from ``start``; returns ``(draws, p)``.

    With ``average`` = d, that is their running mean :math:`\frac{1 - d}{1 - d^T} \sum_t d^{T - t} \theta_t` over steps.
    """
    first = torch.stack([network.init(gen) for _ in range(draws)]) if start is None else start
    trainer, mean = Trainer(network, data, training, first), torch.zeros_like(first)
    for _ in range(training.steps):
        trainer.step(gen)
        if average:
            mean = torch.lerp(trainer.theta, mean, average)
    return mean / (1 - average**training.steps) if average else trainer.theta


def fit(objective: Energy, learner: Learner, theta: Tensor, batches: Iterable[Data]) -> Tensor:
    """Train with one step per batch, without a graph, so memory does not grow with the number of steps.

    Args:
        objective: The loss to minimise.
        learner: The optimiser.
        theta: Initial parameters: one vector ``(p,)``, or several ``(k, p)`` that are trained on the same batches.
        batches: The examples of every step, in order.
    """
    state = learner.init(theta.detach())
    for batch in batches:
        state = learner.step(state, objective.gradient(state.theta, batch))
    return state.theta


def rate(start: float, schedule: str, step: int, steps: int) -> float:
    """The learning rate of one step: constant, half a cosine from ``start`` to zero, or a tenth after half of them."""
    if schedule == "step":
        return start if 2 * step < steps else start / 10
    return start if schedule == "constant" else start * (1 + cos(pi * step / steps)) / 2
