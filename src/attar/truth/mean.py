"""The mean of a Gaussian with known covariance."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from attar.data import Data
from attar.truth.gaussian import Gaussian
from attar.truth.model import Model, weights_of


@dataclass(frozen=True)
class GaussianMean(Model):
    r"""Gaussian examples with unknown mean.

    .. math:: \theta \sim N(\mu_0, \Sigma_0), \; x_i \sim N(\theta, \Sigma): \quad
        \Sigma_n^{-1} = \Sigma_0^{-1} + \sum_i w_i\, \Sigma^{-1}, \quad
        \mu_n = \Sigma_n \Big(\Sigma_0^{-1} \mu_0 + \Sigma^{-1} \sum_i w_i x_i\Big)

    Labels are ignored.
    """

    prior: Gaussian
    noise: Tensor  #: (d, d), the covariance of an example

    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        around = Gaussian(torch.zeros_like(self.prior.mean), self.noise)
        each = around.log_density((data.x - theta[:, None]).flatten(0, 1)).view(len(theta), len(data))
        return each @ weights_of(data)

    def sample(self, theta: Tensor, n: int, gen: Generator) -> Data:
        x = Gaussian(theta, self.noise).sample(n, gen)
        return Data(x, torch.zeros(n, dtype=torch.int64, device=x.device))

    def posterior(self, data: Data) -> Gaussian:
        """The exact posterior, differentiable in examples and weights."""
        weights, prior = weights_of(data), self.prior.precision
        one = torch.cholesky_inverse(torch.linalg.cholesky(self.noise))
        covariance = torch.cholesky_inverse(torch.linalg.cholesky(prior + weights.sum() * one))
        return Gaussian(covariance @ (prior @ self.prior.mean + one @ (weights @ data.x)), covariance)
