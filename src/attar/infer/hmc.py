"""Hamiltonian Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from typing import NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.core.registry import sampler
from attar.data import Data
from attar.data.noise import normal
from attar.infer.chain import Chain
from attar.infer.contract import Draws
from attar.infer.potential import Potential
from attar.nets import Network
from attar.nets.train import Training


class Stride(NamedTuple):
    r"""A step size per chain, adapted by dual averaging until the acceptance rate is ``target``.

    .. math:: \log \epsilon_t = \log 10 \epsilon_0 - \tfrac{\sqrt t}{0.05} \bar H_t, \quad
        \bar H_t = \bar H_{t-1} + \tfrac{1}{t + 10} (\delta - a_t - \bar H_{t-1})

    and :math:`\log \bar\epsilon_t` is the average of :math:`\log \epsilon_t` with weights :math:`t^{-3/4}`.
    """

    tried: Tensor  #: (chains,), log of the step to try
    average: Tensor  #: (chains,), log of the averaged step, used after warm-up
    gap: Tensor  #: (chains,), average shortfall of the acceptance rate
    centre: float  #: log of the step towards which all are shrunk
    moves: int = 0  #: t

    @staticmethod
    def begin(step: float, like: Tensor) -> Stride:
        """The state before the first transition."""
        first = like.new_full((len(like),), log(step))
        return Stride(first, first, torch.zeros_like(first), log(10 * step))

    def after(self, acceptance: Tensor, target: float) -> Stride:
        """The state after a transition with these acceptance probabilities."""
        t = self.moves + 1
        gap = self.gap + (target - acceptance - self.gap) / (t + 10)
        tried = self.centre - sqrt(t) / 0.05 * gap
        return Stride(tried, self.average + t**-0.75 * (tried - self.average), gap, self.centre, t)


class Point(NamedTuple):
    """Position, gradient there, and momentum: where leapfrog steps begin and end."""

    theta: Tensor  #: (chains, p)
    slope: Tensor  #: (chains, p)
    r: Tensor  #: (chains, p)


def leapfrog(gradient: Callable[[Tensor], Tensor], start: Point, step: Tensor, leaps: int) -> Point:
    """The point after ``leaps`` leapfrog steps, with a gradient each; reversible by negating the momentum."""
    theta, slope, r = start
    r = torch.addcmul(r, step, slope, value=-0.5)
    for leap in range(leaps):
        theta = torch.addcmul(theta, step, r)
        slope = gradient(theta)
        r = torch.addcmul(r, step, slope, value=-1 if leap + 1 < leaps else -0.5)
    return Point(theta, slope, r)


class HMCState(NamedTuple):
    """Where the chains are, and the step sizes that warm-up adapts."""

    theta: Tensor  #: (chains, p)
    energy: Tensor  #: (chains,), the potential there
    slope: Tensor  #: (chains, p), and its gradient
    stride: Stride
    moves: int = 0  #: transitions so far
    accepted: Tensor | None = None  #: (chains,) bool, whether the last one was


@sampler(
    "hmc",
    about="MCMC with accepted proposals",
    choose="small networks only",
    takes="10 min",
    paper="Neal, MCMC Using Hamiltonian Dynamics, 2011; Hoffman & Gelman, The No-U-Turn Sampler, JMLR 2014 (step size)",
    cost="leaps gradients on all examples per transition and chain: for small networks",
)
@dataclass(frozen=True)
class HMC(Chain):
    r"""Simulate Hamiltonian dynamics from a new momentum, and accept or reject the end point.

    .. math:: H(\theta, r) = U(\theta) + \tfrac12 \|r\|^2, \quad r \sim N(0, T I), \quad
        a = \min\{1, \exp((H(\theta, r) - H(\theta', r')) / T)\}

    The only asymptotically exact sampler here, so use it to check the others. Warm-up adapts the step size of each
    chain by dual averaging; then it is fixed. Every transition multiplies it by a random factor from [0.8, 1.2], so
    that no path length resonates with the potential.
    """

    step: float = Field(default=0.02, gt=0, description="leapfrog step size that warm-up starts with")
    warmup: int = Field(default=100, ge=0, description="transitions that adapt the step size, before the first draw")
    thin: int = Field(default=40, ge=1, description="transitions from one kept draw to the next")
    leaps: int = Field(default=20, ge=1, description="leapfrog steps per transition")
    accept: float = Field(default=0.8, gt=0, lt=1, description="acceptance rate to adapt to")

    def init(self, potential: Potential, start: Tensor, gen: Generator) -> HMCState:
        energy = potential.value(start)
        return HMCState(start, energy, potential.gradient(start, gen), Stride.begin(self.step, energy))

    def update(self, state: HMCState, potential: Potential, gen: Generator) -> HMCState:
        theta, energy, slope, stride, moves, _ = state
        adapts = moves < self.warmup
        spread = 0.8 + 0.4 * torch.rand(energy.shape, generator=gen, device=gen.device, dtype=theta.dtype)
        size = spread * (stride.tried if adapts else stride.average).exp()
        r = sqrt(self.temperature) * normal(theta, gen)
        end = leapfrog(lambda t: potential.gradient(t, gen), Point(theta, slope, r), size[:, None], self.leaps)
        proposed = potential.value(end.theta)
        fall = energy - proposed + (r.square() - end.r.square()).sum(1) / 2
        chance = (fall / self.temperature).nan_to_num(-torch.inf).clamp(max=0).exp()  # not finite: reject
        accepted = torch.rand(chance.shape, generator=gen, device=gen.device, dtype=chance.dtype) < chance
        theta = torch.where(accepted[:, None], end.theta, theta)
        slope = torch.where(accepted[:, None], end.slope, slope)
        energy = torch.where(accepted, proposed, energy)
        stride = stride.after(chance, self.accept) if adapts else stride
        return HMCState(theta, energy, slope, stride, moves + 1, accepted)

    def infer(
        self, data: Data, network: Network, training: Training, draws: int, gen: Generator, start: Tensor | None = None
    ) -> Draws:
        """As for every chain, but gradients must be exact."""
        if len(data) > training.batch or training.augment != "none":
            raise AttarError(
                f"hmc needs exact gradients on all {len(data)} examples at once: set the training's batch to at least "
                f"{len(data)} and its augment to none, or use sghmc."
            )
        return super().infer(data, network, training, draws, gen, start)
