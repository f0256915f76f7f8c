"""A Bayesian model as a problem: the posterior of a coreset is compared with draws from that of all data."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.assess.metrics import STRICT
from attar.core.streams import evaluation, reduction, seed_of
from attar.data import Data, Spec, Split
from attar.infer.diagnose import ess, rhat
from attar.infer.hmc import HMC
from attar.truth import Gaussian, LogisticRegression

#: Exact chains: at temperature one, with paths long enough for posteriors of a few dimensions.
CHAINS = HMC(step=0.05, warmup=150, thin=1, leaps=8, temperature=1.0, chains=4)


class Walked(NamedTuple):
    """Draws from a posterior, and whether the chains agree."""

    draws: Tensor  #: (chains, kept, d)
    rhat: float  #: the largest over parameters
    ess: float  #: the smallest

    @property
    def flat(self) -> Tensor:
        """All draws, ``(n, d)``."""
        return self.draws.flatten(0, 1)


@dataclass(frozen=True, config=STRICT)
class LogisticProblem:
    r"""Bayesian logistic regression on simulated data.

    .. math:: \theta \sim N(0, s^2 I), \quad x \sim N(0, I), \quad p(y = 1) = (1 + e^{-x^\top \theta})^{-1}
    """

    dimensions: int = Field(ge=1)
    examples: int = Field(ge=2)  #: of the training set, and of validation and test each
    prior_scale: float = Field(gt=0)  #: s
    seed: int = 0  #: of the true parameters and the data
    kind: Literal["logistic"] = "logistic"

    @property
    def model(self) -> LogisticRegression:
        """The model."""
        return LogisticRegression(Gaussian.standard(self.dimensions, self.prior_scale))

    def split(self) -> Split:
        """The data, simulated with its seed."""
        gen = reduction(seed_of("board", self.seed))
        theta = self.model.prior.sample(1, gen)[0]
        spec = Spec.of((self.dimensions,), 2, name=f"logistic-{self.dimensions}")
        drawn = [self.model.sample(theta, self.examples, gen) for _ in range(3)]
        train, val, test = (Data(part.x, part.y, None, spec) for part in drawn)
        return Split(train, val, test)

    def walk(self, data: Data, count: int, gen: Generator) -> Walked:
        """Draws from the posterior of examples, or of fewer that stand for all."""
        model = self.model
        start = model.prior.sample(CHAINS.chains, gen)
        chains = CHAINS.run(model.potential(self.counted(data)), start, count, gen)
        return Walked(chains.theta, float(rhat(chains.theta).max()), float(ess(chains.theta).min()))

    def counted(self, data: Data) -> Data:
        """The examples with their weights; those without count for the whole training set in equal parts."""
        x = data.x.double()
        even = torch.full((len(data),), self.examples / len(data)).double()
        return Data(x, data.y, even if data.weights is None else data.weights.double(), data.spec)

    def predict(self, draws: Tensor, data: Data) -> Tensor:
        """The posterior predictive, ``(n, 2)``."""
        one = torch.sigmoid(draws @ data.x.double().T).mean(0)
        return torch.stack([1 - one, one], 1)


def stream(seed: int) -> Generator:
    """The stream of chains, which no reduction shares."""
    return evaluation(seed, purpose="board")
