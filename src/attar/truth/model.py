"""The base class of models with a known posterior."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Generator, Tensor

from attar.data import Data
from attar.truth.gaussian import Gaussian


class Model(ABC):
    """A likelihood with a Gaussian prior; examples may be weighted."""

    prior: Gaussian

    @abstractmethod
    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        """The weighted log-likelihood of the data for every row of ``(k, d)``: ``(k,)``."""

    @abstractmethod
    def sample(self, theta: Tensor, n: int, gen: Generator) -> Data:
        """``n`` examples under the parameters ``(d,)``."""

    def potential(self, data: Data) -> ModelPotential:
        """The potential that samplers use."""
        return ModelPotential(self, data)


class ModelPotential:
    r"""The negative log posterior up to a constant, :math:`-\sum_i w_i \log p(y_i \mid \theta)
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
    """The weight of each example: one by default."""
    return data.x.new_ones(len(data)) if data.weights is None else data.weights
