"""Bayesian pseudo-coresets by the reverse divergence."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.bayes.energy import EnergyPotential, check, descend
from attar.condense.contract import Condenser, Descent, Loss, Task
from attar.core.registry import pseudo_coreset
from attar.data import Data, augment
from attar.nets.objective import Energy, Objective


class BPCRKLState(NamedTuple):
    """A network in training on the examples, and the updates since its initialisation."""

    theta: Tensor
    age: int


@pseudo_coreset(
    "bpc-rkl",
    about="reverse KL, without experts",
    choose="to study divergences",
    takes="5 min",
    paper="Manousakas, Xu, Mascolo & Campbell, Bayesian Pseudocoresets, NeurIPS 2020; Kim et al., NeurIPS 2022",
    learns="pixels",
    cost="net_steps passes of the synthetic examples, second derivatives through them, and a real batch",
)
@dataclass(frozen=True)
class BPCRKL(Condenser):
    r"""Minimise the reverse KL divergence, from the examples' posterior to that of the full data.

    .. math:: \nabla_{\tilde x} \mathrm{KL}[\pi_{\tilde x}, \pi_x] = -\mathrm{Cov}_{\theta \sim \pi_{\tilde x}}
        \big[\nabla_{\tilde x} \tilde\ell(\theta),\; \ell(\theta) - \tilde\ell(\theta)\big]
        \;\approx\; \sigma^2\, \nabla_{\tilde x}\, \tfrac12
        \big\|\nabla_\theta \tilde\ell(\theta^*) - \nabla_\theta \ell(\theta^*)\big\|^2

    with the log-likelihoods :math:`\ell` of the real data, by a batch scaled to its number, and :math:`\tilde\ell` of
    the examples scaled to the same. The posterior is a narrow Gaussian around a network :math:`\theta^*` trained on
    the examples for ``net_steps`` between updates; the right-hand side is the limit of a small standard deviation
    :math:`\sigma`, which then is a factor only, and is left out (docs/pseudo-coresets.md derives it). A new network is
    drawn after ``restart`` updates. Published code estimates the covariance from draws.
    """

    batch: int = Field(default=256, ge=1, description="real examples per step")
    net_steps: int = Field(default=10, ge=1, description="descent steps of the centre between updates")
    step_size: float = Field(default=0.1, gt=0, description="step size of that descent")
    restart: int = Field(default=30, ge=1, description="updates before a new network")
    energy: str = Field(default="cross-entropy", description="cross-entropy, focal-2 or multi-margin")
    strategy: str | None = Field(default=None, description="siamese augmentation; the paper's for images if not set")

    descent: ClassVar[Descent] = Descent(steps=150, optimiser="adam", lr=0.02, schedule="cosine")
    whole: ClassVar[str] = "a step has no experts and follows one network"

    def __post_init__(self) -> None:
        check(self.strategy, self.energy)

    def init(self, task: Task, gen: Generator) -> BPCRKLState:
        return BPCRKLState(task.network.init(gen), 0)

    def loss(self, syn: Data, state: BPCRKLState, task: Task, gen: Generator) -> Loss:
        strategy = augment.resolve(self.strategy, syn.spec)
        theta, age = (task.network.init(gen), 0) if state.age == self.restart else state
        energy = Objective(task.network, self.energy)
        theta = descend(EnergyPotential(energy, syn, strategy), theta, self.net_steps, self.step_size, gen)
        omega = augment.draw(strategy, gen)  # siamese augmentation: the same draw for both
        real = replace(task.data.sample(self.batch, gen), weights=None).map(omega)
        value = narrow(energy, theta, syn.map(omega), real)
        return Loss(value, BPCRKLState(theta, age + 1), {"gap": value.detach()})


def narrow(energy: Energy, theta: Tensor, syn: Data, real: Data) -> Tensor:
    r"""The reverse divergence of a narrow Gaussian around ``theta``, over :math:`\sigma^2` and up to a constant.

    .. math:: \tfrac12 \|\nabla_\theta E(\tilde x, \theta) - \nabla_\theta E(x, \theta)\|^2
    """
    ours, theirs = energy.gradient(theta, syn, graph=True), energy.gradient(theta, real)
    return (ours - theirs).square().sum() / 2
