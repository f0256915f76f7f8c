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
    moves: int = 0  #: transitions so far
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

    Its stationary distribution is the posterior up to an error of order :math:`\epsilon`. Over networks, where U is
    divided by n and parameters are in units of the prior, a transition moves parameter k along minus the gradient of
    :math:`U / n` with the learning rate :math:`\epsilon (s \sigma_k)^2 / 2`.

    Without momentum it needs several times as many transitions as ``sghmc``.
    """

    step: float = Field(
        default=0.4, gt=0, description="step size ε: the learning rate on U/n is ε/2, in units of the prior"
    )
    warmup: int = Field(
        default=500, ge=0, description="transitions before the first draw is kept, during which the step grows"
    )
    thin: int = Field(default=2000, ge=1, description="transitions from one kept draw to the next")

    def init(self, potential: Potential, start: Tensor, gen: Generator) -> LangevinState:
        return LangevinState(start)

    def update(self, state: LangevinState, potential: Potential, gen: Generator) -> LangevinState:
        theta, moves, _ = state
        step = self.warmed(moves)
        noise = sqrt(step * self.temperature) * normal(theta, gen)
        return LangevinState(theta - step / 2 * potential.gradient(theta, gen) + noise, moves + 1)
