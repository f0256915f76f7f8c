"""Stochastic weight averaging, Gaussian."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.registry import sampler
from attar.data import Data
from attar.data.noise import normal
from attar.infer.contract import Draws, Sampler
from attar.infer.divide import trained
from attar.nets import Network
from attar.nets.train import Training, train


class Moments(NamedTuple):
    """A low-rank plus diagonal Gaussian, fitted to iterates."""

    mean: Tensor  #: (p,)
    variance: Tensor  #: (p,)
    deviations: Tensor  #: (K, p), of the last K iterates from the mean

    @staticmethod
    def of(iterates: Tensor, rank: int) -> Moments:
        """The moments of ``(iterates, p)``, and the deviations of the last ``rank`` of them."""
        mean = iterates.mean(0)
        return Moments(mean, iterates.var(0), iterates[-rank:] - mean)

    def sample(self, n: int, gen: Generator) -> Tensor:
        """``n`` draws, ``(n, p)``."""
        k = len(self.deviations)
        each = normal(self.mean.expand(n, -1), gen) * self.variance.sqrt()
        joint = normal(self.mean.new_empty(n, k), gen) @ self.deviations / sqrt(k - 1)
        return self.mean + (each + joint) / sqrt(2)


@sampler(
    "swag",
    about="Gaussian around SGD iterates",
    choose="for one mode",
    takes="2 min",
    paper="Maddox et al., A Simple Baseline for Bayesian Uncertainty in Deep Learning, NeurIPS 2019",
    cost="modes trainings, and iterates × every further steps for each",
)
@dataclass(frozen=True)
class SWAG(Sampler):
    r"""Fit a Gaussian to the iterates of SGD with a constant learning rate after training.

    .. math:: \theta \sim N\Big(\bar\theta,\; \tfrac12 \Sigma_\text{diag} + \tfrac1{2 (K - 1)} D D^T\Big), \quad
        D = (\theta_{t-K+1} - \bar\theta, \dots, \theta_t - \bar\theta)

    with mean and diagonal over all iterates. Deviations are from the final mean, not the running mean, so with as many
    columns as iterates the variances are exactly theirs. Several modes, each with its own Gaussian, are the mixture
    of Wilson & Izmailov (Bayesian Deep Learning and a Probabilistic Perspective, 2020).
    """

    modes: int = Field(default=4, ge=1, description="trainings, each with its own Gaussian")
    rate: float = Field(default=0.05, gt=0, description="constant learning rate after training")
    iterates: int = Field(default=20, ge=2, description="iterates to which the Gaussian is fitted")
    every: int = Field(default=5, ge=1, description="steps between iterates")
    rank: int = Field(default=20, ge=2, description="rank of the low-rank part: deviations of the last iterates")
    batch: int = Field(default=32, ge=1, description="batch size after training, at most half of the examples")

    def infer(
        self, data: Data, network: Network, training: Training, draws: int, gen: Generator, start: Tensor | None = None
    ) -> Draws:
        modes = min(self.modes, draws)
        theta = trained(network, data, training, gen, modes, None if start is None else start[:modes])
        iterates = torch.stack(self._collect(theta, network, data, training, gen), 1)
        each = -(-draws // modes)
        drawn = torch.stack([Moments.of(rows, self.rank).sample(each, gen) for rows in iterates], 1)
        return Draws(
            network, drawn.flatten(0, 1)[:draws], data.spec
        )  # modes alternate, so that any prefix holds all of them equally

    def _collect(self, theta: Tensor, network: Network, data: Data, training: Training, gen: Generator) -> list[Tensor]:
        # A coreset often fits into one batch, which would leave SGD without noise.
        batch = max(1, min(self.batch, len(data) // 2))
        plain = replace(training, optimiser="sgd", momentum=0, schedule="constant", lr=self.rate)
        found = []
        for _ in range(self.iterates):
            theta = train(network, data, replace(plain, steps=self.every, batch=batch), gen, start=theta)
            found.append(theta)
        return found
