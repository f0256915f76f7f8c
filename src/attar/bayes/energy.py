"""The energy of synthetic examples, minus their log-likelihood, as a potential for chains and gradient descent."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from attar.data import Data, augment
from attar.nets.learner import SGD
from attar.nets.losses import losses
from attar.nets.objective import Energy
from attar.nets.train import fit


class EnergyPotential:
    """The energy of fixed examples as a potential for samplers.

    Args:
        energy: E(x̃, θ), for networks an ``Objective``.
        data: The examples x̃.
        strategy: Augmentation of the examples, drawn anew for each of them and for each gradient.
    """

    def __init__(self, energy: Energy, data: Data, strategy: str = "none") -> None:
        self.energy, self.data, self.strategy = energy, data.detach(), strategy

    def value(self, theta: Tensor) -> Tensor:
        """The energy of every row of ``theta``, without augmentation."""
        with torch.no_grad():
            return self.energy.value(theta, self.data)

    def gradient(self, theta: Tensor, gen: Generator) -> Tensor:
        """The gradient of every row, on examples that are augmented once for all rows."""
        return self.energy.gradient(theta, next(self.batches(1, gen)))

    def batches(self, steps: int, gen: Generator) -> Iterator[Data]:
        """The augmented examples of each step."""
        return (augmented(self.data, self.strategy, gen) for _ in range(steps))


def augmented(data: Data, strategy: str, gen: Generator) -> Data:
    """The examples, each under its own draw of the augmentation."""
    return data.map(lambda x: augment.jitter(strategy, x, gen))


def descend(potential: EnergyPotential, theta: Tensor, steps: int, step_size: float, gen: Generator) -> Tensor:
    """Gradient descent on the energy, from one vector or from several."""
    return fit(potential.energy, SGD(step_size), theta, potential.batches(steps, gen))


def check(strategy: str | None, energy: str) -> None:
    """Refuse an augmentation or a loss that does not exist."""
    augment.parse(strategy or "none")
    losses(energy)
