"""Langevin dynamics."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.registry import sampler
from attar.data.noise import normal
from attar.infer.chain import Chain
from attar.infer.potential import Potential


class LangevinState(NamedTuple):
    """Where the chains are."""

    theta: Tensor  #: (chains, p)
    accepted: None = None  #: every transition is


@sampler(
    "langevin",
    about="MCMC by noisy gradient descent",
    choose="the simplest chain",
    takes="2 min",
    paper="Welling & Teh, Bayesian Learning via Stochastic Gradient Langevin Dynamics, ICML 2011",
    cost="one gradient per transition and chain",
)
@dataclass(frozen=True)
class Langevin(Chain):
    r"""Gradient descent on the potential, with noise of the matching variance.

    .. math:: \theta \leftarrow \theta - \tfrac\epsilon2 \nabla U(\theta) + \sqrt{\epsilon T}\, \eta,
        \quad \eta \sim N(0, I)

    Its stationary distribution is the posterior up to an error of order :math:`\epsilon`.
    """

    step: float = Field(default=0.1, gt=0, description="step size: twice the learning rate on the mean loss")

    def init(self, potential: Potential, start: Tensor, gen: Generator) -> LangevinState:
        return LangevinState(start)

    def update(self, state: LangevinState, potential: Potential, gen: Generator) -> LangevinState:
        drift = potential.gradient(state.theta, gen)
        noise = sqrt(self.step * self.temperature) * normal(state.theta, gen)
        return LangevinState(state.theta - self.step / 2 * drift + noise)
