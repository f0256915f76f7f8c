"""What models with a known posterior have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Generator, Tensor

from attar.data import Data
from attar.truth.gaussian import Gaussian


class Model(ABC):
    """A likelihood with a Gaussian prior; a weight says how many times an example counts."""

    prior: Gaussian

    @abstractmethod
    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        """The weighted sum over the data, for every row of ``(k, d)``: ``(k,)``."""

    @abstractmethod
    def sample(self, theta: Tensor, n: int, gen: Generator) -> Data:
        """``n`` examples under the parameters ``(d,)``."""

    def potential(self, data: Data) -> ModelPotential:
        """What samplers walk on."""
        return ModelPotential(self, data)


class ModelPotential:
    r"""Minus the log of a model's posterior up to a constant, :math:`-\sum_i w_i \log p(y_i \mid \theta)
    - \log \pi_0(\theta)`, exactly.
    """

    def __init__(self, model: Model, data: Data) -> None:
        self.model, self.data = model, data

    def value(self, theta: Tensor) -> Tensor:
        return -self.model.log_likelihood(theta, self.data) - self.model.prior.log_density(theta)

    def gradient(self, theta: Tensor, gen: Generator) -> Tensor:
        with torch.enable_grad():
            at = theta.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.value(at).sum(), at)
        return slope


def weights_of(data: Data) -> Tensor:
    """How many times each example counts: once where nothing else is said."""
    return data.x.new_ones(len(data)) if data.weights is None else data.weights
