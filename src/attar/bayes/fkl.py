"""Bayesian pseudo-coresets by the forward divergence."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.bayes.cd import contrast
from attar.bayes.energy import EnergyPotential, augmented, check, descend
from attar.condense.contract import Condenser, Descent, Loss, Needs, NoState, Task
from attar.condense.trajectory import stretch
from attar.core.registry import pseudo_coreset
from attar.data import Data, augment
from attar.data.noise import normal
from attar.nets.objective import Objective, Reduction

PHASES = ("positive", "negative")  #: energies under draws from the full data's and from the examples' posterior


@pseudo_coreset(
    "bpc-fkl",
    about="forward KL, experts",
    choose="to study divergences",
    takes="20 min",
    paper="Kim, Choi, Lee, Lee, Lee & Ha, On Divergence Measures for Bayesian Pseudocoresets, NeurIPS 2022",
    learns="pixels",
    cost="net_steps + 2 draws forward and backward passes of the synthetic examples, and experts once",
)
@dataclass(frozen=True)
class BPCFKL(Condenser):
    r"""Minimise the forward KL divergence, from the full data's posterior to that of the examples.

    .. math:: \nabla_{\tilde x} \mathrm{KL}[\pi_x, \pi_{\tilde x}] = E_{\pi_x}[\nabla_{\tilde x} E(\tilde x, \theta)]
        - E_{\pi_{\tilde x}}[\nabla_{\tilde x} E(\tilde x, \theta)]

    with both posteriors approximated by Gaussians of standard deviation ``sigma``: around an expert ``ahead`` epochs
    after epoch t, and around the result of ``net_steps`` of gradient descent on the examples from the expert at epoch t
    (gradient stopped). The two expectations are means over ``draws``, each with its own augmentation of the examples,
    which both of its parameter vectors see. Draws are differentiated one after the other, so that memory does not grow
    with their number.
    """

    net_steps: int = Field(default=30, ge=1, description="descent steps on the synthetic examples, N")
    step_size: float = Field(default=0.03, gt=0, description="step size of that descent")
    ahead: float | None = Field(
        default=None, gt=0, description="epochs from the start to the target of an expert, M; 40 steps if not set"
    )
    max_epoch: float | None = Field(default=0.0, ge=0, description="last epoch to start from; any if not set")
    sigma: float = Field(default=0.01, ge=0, description="standard deviation of both Gaussians")
    draws: int = Field(default=30, ge=1, description="draws from each Gaussian per step")
    energy: str = Field(default="cross-entropy", description="cross-entropy, focal-2 or multi-margin")
    reduction: Reduction = Field(default="mean", description="energy as a mean or a sum over the examples")
    strategy: str | None = Field(default=None, description="augmentation of every image; the paper's if not set")

    descent: ClassVar[Descent] = Descent(steps=200, optimiser="adam", lr=0.05, schedule="cosine")
    needs: ClassVar[Needs] = Needs(experts=True)
    shares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self.strategy, self.energy)

    def init(self, task: Task, gen: Generator) -> NoState:
        stretch(task, self.ahead, self.max_epoch, torch.Generator())  # raises if the experts have too few epochs
        return NoState()

    def loss(self, syn: Data, state: NoState, task: Task, gen: Generator) -> Loss:
        strategy = augment.resolve(self.strategy, syn.spec)
        start, target, place = stretch(task, self.ahead, self.max_epoch, gen)
        energy = Objective(task.network, self.energy, self.reduction)
        reached = descend(EnergyPotential(energy, syn, strategy), start[None], self.net_steps, self.step_size, gen)
        still = replace(syn, x=syn.x.detach().requires_grad_())
        value, slope, metrics = syn.x.new_zeros(()), torch.zeros_like(syn.x), dict.fromkeys(PHASES, syn.x.new_zeros(()))
        for number in range(self.draws):
            plus, minus = (centre + self.sigma * normal(centre, gen) for centre in (target[None], reached))
            seen = augmented(still, strategy, gen)
            if number % task.share.size != task.share.rank:
                continue
            part, found = contrast(energy, seen, plus, minus)
            slope += torch.autograd.grad(part, still.x)[0] / self.draws
            value += part.detach() / self.draws
            metrics = {name: metrics[name] + found[name] / self.draws for name in PHASES}
        metrics = {name: task.share.total(part) for name, part in metrics.items()}
        pull = (slope * syn.x).sum()
        return Loss(value + pull - pull.detach(), state, {**metrics, **place})
