"""Bayesian pseudo-coresets by the reverse divergence."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.bayes.energy import EnergyPotential, check, descend
from attar.condense.contract import Condenser, Descent, Loss, Task
from attar.core.registry import pseudo_coreset
from attar.data import Data, augment
from attar.data.noise import normal
from attar.nets.objective import Objective


class BPCRKLState(NamedTuple):
    """A network in training on the examples, and the updates since its initialisation."""

    theta: Tensor
    age: int


@pseudo_coreset(
    "bpc-rkl",
    about="reverse KL, without experts",
    choose="to study divergences",
    takes="3 min",
    paper="Manousakas, Xu, Mascolo & Campbell, Bayesian Pseudocoresets, NeurIPS 2020; Kim et al., NeurIPS 2022",
    learns="pixels",
    cost="net_steps passes of the synthetic examples, draws forward passes of them and of a real batch",
)
@dataclass(frozen=True)
class BPCRKL(Condenser):
    r"""Minimise the reverse KL divergence, from the examples' posterior to that of the full data.

    .. math:: \nabla_{\tilde x} \mathrm{KL}[\pi_{\tilde x}, \pi_x] = -\mathrm{Cov}_{\theta \sim \pi_{\tilde x}}
        \big[\nabla_{\tilde x} \tilde\ell(\theta),\; \ell(\theta) - \tilde\ell(\theta)\big]

    with the log-likelihoods :math:`\ell` of the real data, by a batch scaled to its number, and :math:`\tilde\ell` of
    the examples scaled to the same. The posterior is approximated by a Gaussian of standard deviation ``sigma`` around
    a network trained on the examples for ``net_steps`` between updates; a new network is drawn after ``restart``
    updates.
    """

    batch: int = Field(default=64, ge=1, description="real examples per step")
    draws: int = Field(default=4, ge=2, description="posterior draws per step")
    sigma: float = Field(default=0.01, gt=0, description="standard deviation of the posterior around its centre")
    net_steps: int = Field(default=10, ge=1, description="descent steps of the centre between updates")
    step_size: float = Field(default=0.1, gt=0, description="step size of that descent")
    restart: int = Field(default=30, ge=1, description="updates before a new network")
    energy: str = Field(default="cross-entropy", description="cross-entropy, focal-2 or multi-margin")
    strategy: str | None = Field(default=None, description="siamese augmentation; the paper's for images if not set")

    descent: ClassVar[Descent] = Descent(steps=150, optimiser="adam", lr=0.02, schedule="cosine")

    def __post_init__(self) -> None:
        check(self.strategy, self.energy)

    def init(self, task: Task, gen: Generator) -> BPCRKLState:
        return BPCRKLState(task.network.init(gen), 0)

    def loss(self, syn: Data, state: BPCRKLState, task: Task, gen: Generator) -> Loss:
        strategy = augment.resolve(self.strategy, syn.spec)
        theta, age = (task.network.init(gen), 0) if state.age == self.restart else state
        energy = Objective(task.network, self.energy)
        theta = descend(EnergyPotential(energy, syn, strategy), theta, self.net_steps, self.step_size, gen)
        draws = theta + self.sigma * normal(theta.expand(self.draws, -1), gen)
        omega, n = augment.draw(strategy, gen), len(task.data)
        ours = -n * energy.value(draws, syn.map(omega))
        real = replace(task.data.sample(self.batch, gen), weights=None)
        with torch.no_grad():
            theirs = -n * energy.value(draws, real.map(omega))
        value = reverse(ours, theirs) / n
        metrics = {"real": -theirs.mean() / n, "synthetic": -ours.detach().mean() / n}
        return Loss(value, BPCRKLState(theta, age + 1), metrics)


def reverse(ours: Tensor, theirs: Tensor) -> Tensor:
    r"""A value whose gradient is that of the reverse divergence, from log-likelihoods ``(draws,)`` at draws of the
    examples' posterior.

    .. math:: -\frac{1}{S-1} \sum_s (h_s - \bar h)\, \tilde\ell(\theta_s), \quad h = \ell - \tilde\ell
        \;\text{held constant}
    """
    gap = (theirs - ours).detach()
    return -((gap - gap.mean()) * ours).sum() / (len(ours) - 1)
