"""Bayesian linear regression."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import torch
from torch import Generator, Tensor

from attar.data import Data
from attar.data.noise import normal
from attar.truth.gaussian import Gaussian
from attar.truth.model import Model, weights_of


@dataclass(frozen=True)
class LinearRegression(Model):
    r"""Float targets ``(n,)`` with Gaussian noise.

    .. math:: \theta \sim N(\mu_0, \Sigma_0), \; y_i \sim N(x_i^\top \theta, \sigma^2): \quad
        \Sigma_n^{-1} = \Sigma_0^{-1} + \sigma^{-2} X^\top W X, \quad
        \mu_n = \Sigma_n (\Sigma_0^{-1} \mu_0 + \sigma^{-2} X^\top W y)
    """

    prior: Gaussian
    noise: float = 1.0  #: σ, the deviation of a target

    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        error = (data.y - theta @ data.x.T) / self.noise
        return -(error.square() / 2 + log(self.noise) + log(2 * pi) / 2) @ weights_of(data)

    def sample(self, theta: Tensor, n: int, gen: Generator) -> Data:
        """``n`` examples with standard normal inputs."""
        x = normal(theta.expand(n, -1), gen)
        error = normal(theta.new_empty(n), gen)
        return Data(x, x @ theta + self.noise * error)

    def posterior(self, data: Data) -> Gaussian:
        """The exact posterior, differentiable in inputs, targets and weights."""
        weighted, prior = data.x.T * weights_of(data) / self.noise**2, self.prior.precision
        covariance = torch.cholesky_inverse(torch.linalg.cholesky(prior + weighted @ data.x))
        return Gaussian(covariance @ (prior @ self.prior.mean + weighted @ data.y), covariance)
