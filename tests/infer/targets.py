"""Potentials whose moments are known, and how far off an estimate of them may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import torch
from torch import Generator, Tensor

from attar.infer.diagnose import ess


@dataclass
class Target:
    """A potential in float64 by its formulas for all rows at once, with what is known of its coordinates."""

    potential: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    mean: Tensor
    deviation: Tensor
    skewness: Tensor

    def value(self, theta: Tensor) -> Tensor:
        return self.potential(theta)

    def gradient(self, theta: Tensor, gen: Generator) -> Tensor:
        return self.slope(theta)

    def start(self, chains: int, gen: Generator) -> Tensor:
        """Points as wide apart as the target, around its mean."""
        noise = torch.randn(chains, len(self.mean), generator=gen, dtype=torch.float64)
        return self.mean + self.deviation * noise


def gaussian(temperature: float = 1.0) -> Target:
    """Three correlated coordinates, as exp(-U/T) has them."""
    mean = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    covariance = torch.tensor([[1.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]], dtype=torch.float64)
    precision = covariance.inverse()
    return Target(
        lambda t: ((t - mean) @ precision * (t - mean)).sum(-1) / 2,
        lambda t: (t - mean) @ precision,
        mean,
        (temperature * covariance.diagonal()).sqrt(),
        torch.zeros(3).double(),
    )


def normal(size: int = 1) -> Target:
    """Independent standard normal coordinates."""
    zero, one = torch.zeros(size).double(), torch.ones(size).double()
    return Target(lambda t: t.square().sum(-1) / 2, lambda t: t, zero, one, zero)


def log_gamma(temperature: float = 1.0) -> Target:
    """Logarithms of gamma variables of shapes 2 and 4: exp((k t - e^t) / T) has shape k/T and scale T."""
    shape = torch.tensor([2.0, 4.0], dtype=torch.float64)
    k = shape / temperature
    variance, third = torch.polygamma(1, k), torch.polygamma(2, k)
    return Target(
        lambda t: (t.exp() - shape * t).sum(-1),
        lambda t: t.exp() - shape,
        torch.digamma(k) + log(temperature),
        variance.sqrt(),
        third / variance**1.5,
    )


def errors(target: Target, theta: Tensor) -> Tensor:
    """How many Monte Carlo errors the first three moments of ``(chains, kept, p)`` are off, ``(3, p)``.

    The error of a mean is the deviation of what is averaged over the root of its effective sample size.
    """
    z = (theta - target.mean) / target.deviation
    true = torch.stack([torch.zeros_like(target.mean), torch.ones_like(target.mean), target.skewness])
    powers = torch.stack([z, z**2, z**3], 2)
    return (powers.mean((0, 1)) - true) / powers.std((0, 1)) * ess(powers).sqrt()
