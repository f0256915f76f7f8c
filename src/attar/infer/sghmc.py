"""Stochastic gradient Hamiltonian Monte Carlo."""

from __future__ import annotations

from math import cos, pi, sqrt
from typing import NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.registry import sampler
from attar.data.noise import normal
from attar.infer.chain import Chain
from attar.infer.potential import Potential


class SGHMCState(NamedTuple):
    """Where the chains are and how they move."""

    theta: Tensor  #: (chains, p)
    momentum: Tensor  #: (chains, p)
    moves: int = 0  #: transitions so far
    accepted: None = None  #: every transition is


@sampler(
    "sghmc",
    about="MCMC with momentum, friction",
    choose="minibatches",
    takes="2 min",
    paper="Chen, Fox & Guestrin, Stochastic Gradient Hamiltonian Monte Carlo, ICML 2014",
    cost="one gradient per transition and chain",
)
@dataclass(frozen=True)
class SGHMC(Chain):
    r"""Gradient descent on the potential with momentum, friction :math:`\alpha` and noise of the matching variance.

    .. math:: r &\leftarrow r - \sqrt\epsilon\, \nabla U(\theta), \quad
        \theta \leftarrow \theta + \tfrac{\sqrt\epsilon}2 r \\
        r &\leftarrow (1 - \alpha)\, r + \sqrt{(1 - (1 - \alpha)^2)\, T}\, \eta, \quad
        \theta \leftarrow \theta + \tfrac{\sqrt\epsilon}2 r, \quad \eta \sim N(0, I)

    The momentum is refreshed exactly in the middle of the update, in the order "BAOAB" of Leimkuhler & Matthews
    (Rational Construction of Stochastic Numerical Methods, 2013), rather than by the paper's Euler step. With exact
    gradients the positions have temperature T up to :math:`O(\epsilon)`, and exactly T for a Gaussian, for every
    :math:`\alpha`. At :math:`\alpha = 1` it is nearly ``langevin``. The step size :math:`\epsilon` is a squared time:
    a gradient that stays the same moves parameters by :math:`\epsilon / \alpha` times it in each transition.

    With ``cyclical``, the step size falls from :math:`\epsilon` to zero along half a cosine between one kept draw and
    the next (Zhang et al., Cyclical Stochastic Gradient MCMC, ICLR 2020), so that ``thin`` is the length of a cycle.
    """

    friction: float = Field(
        default=0.1, gt=0, le=1, description="share of the momentum that is refreshed in each transition"
    )
    cyclical: bool = Field(default=False, description="cosine schedule of the step size between draws")

    def init(self, potential: Potential, start: Tensor, gen: Generator) -> SGHMCState:
        return SGHMCState(start, sqrt(self.temperature) * normal(start, gen))

    def update(self, state: SGHMCState, potential: Potential, gen: Generator) -> SGHMCState:
        theta, r, moves, _ = state
        keep, half = 1 - self.friction, sqrt(self._step(moves)) / 2
        r = r - 2 * half * potential.gradient(theta, gen)
        theta = theta + half * r
        r = keep * r + sqrt((1 - keep**2) * self.temperature) * normal(r, gen)
        return SGHMCState(theta + half * r, r, moves + 1)

    def _step(self, number: int) -> float:
        phase = (number - self.warmup) % self.thin / self.thin  # draws are kept at the end of a cycle
        return self.warmed(number) * ((1 + cos(pi * phase)) / 2 if self.cyclical else 1.0)
