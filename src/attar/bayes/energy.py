"""Energies: minus the log-likelihood of examples, and the potential that chains on them walk on."""

from __future__ import annotations

from typing import Literal, Protocol

import torch
from torch import Generator, Tensor
from torch.func import vmap

from attar.data import Data, augment
from attar.nets import Network
from attar.nets.losses import losses

Reduction = Literal["mean", "sum"]


class Energy(Protocol):
    """E(x̃, θ) for every row of ``theta``, ``(k, p)`` → ``(k,)``, differentiable in both."""

    def __call__(self, theta: Tensor, data: Data) -> Tensor: ...


class NetworkEnergy:
    r"""The energy of examples under a network.

    .. math:: E(\tilde x, \theta) = \sum_j \ell(f_\theta(\tilde x_j), \tilde y_j)

    Args:
        network: f.
        loss: The loss :math:`\ell`, by name.
        reduction: ``sum``, or ``mean`` for the sum over the number of examples.
    """

    def __init__(self, network: Network, loss: str = "cross-entropy", reduction: Reduction = "mean") -> None:
        self.network, self.loss, self.reduction = network, losses(loss), reduction

    def __call__(self, theta: Tensor, data: Data) -> Tensor:
        if len(theta) == 1:  # a lone network pays for vmap and gains nothing
            return self._one(theta[0], data)[None]
        found: Tensor = vmap(lambda row: self._one(row, data))(theta)
        return found

    def _one(self, theta: Tensor, data: Data) -> Tensor:
        each = self.loss(self.network(theta, data.x), data.y)
        return each.mean() if self.reduction == "mean" else each.sum()


class EnergyPotential:
    """An energy of fixed examples as what samplers walk on; a gradient may see them augmented, all alike."""

    def __init__(self, energy: Energy, data: Data, strategy: str = "none") -> None:
        self.energy, self.data, self.strategy = energy, data.map(Tensor.detach), strategy

    def value(self, theta: Tensor) -> Tensor:
        with torch.no_grad():
            return self.energy(theta, self.data)

    def gradient(self, theta: Tensor, gen: Generator) -> Tensor:
        with torch.enable_grad():
            at = theta.detach().requires_grad_()
            total = self.energy(at, self.data.map(augment.draw(self.strategy, gen))).sum()
            (slope,) = torch.autograd.grad(total, at)
        return slope


def descend(potential: EnergyPotential, theta: Tensor, steps: int, step_size: float, gen: Generator) -> Tensor:
    """Gradient descent; no graph is kept, so memory does not grow with the steps."""
    for _ in range(steps):
        theta = theta - step_size * potential.gradient(theta, gen)
    return theta


def normal(like: Tensor, gen: Generator) -> Tensor:
    """Independent standard normal numbers in the shape of a tensor."""
    return torch.randn(like.shape, generator=gen, device=gen.device, dtype=like.dtype)
