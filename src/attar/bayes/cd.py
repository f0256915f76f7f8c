"""Bayesian pseudo-coresets by contrastive divergence."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.bayes.energy import EnergyPotential, augmented, check
from attar.bayes.negative import NEGATIVES
from attar.condense.contract import Condenser, Descent, Loss, Needs, NoState, Task
from attar.core.errors import AttarError
from attar.core.registry import pseudo_coreset
from attar.data import Data, augment
from attar.data.noise import normal
from attar.experts.store import Trajectories
from attar.nets.objective import Energy, Objective, Reduction


@pseudo_coreset(
    "bpc-cd",
    about="contrastive divergence, experts",
    choose="for comparison",
    takes="5 min",
    paper="Tiwary, Shubham, Kashyap & Prathosh, Bayesian Pseudo-Coresets via Contrastive Divergence, UAI 2024",
    learns="pixels",
    cost="k forward and backward passes of the synthetic examples, and experts once",
)
@dataclass(frozen=True)
class BPCCD(Condenser):
    r"""Lower the energy of the examples at parameters trained on the full data, and raise it at parameters sampled from
    the examples' own posterior.

    .. math:: \min_{\tilde x} \; \tfrac1N \sum_j
        \big[ E(\tilde x, \theta^+_j) - E(\tilde x, \mathrm{sg}\,\theta^-_j) \big], \quad
        \theta^+ = \theta_k + \Sigma^{1/2} \epsilon

    with :math:`\theta_k` from a random trajectory and epoch of the experts, and :math:`\theta^-` after ``k`` steps of
    Langevin dynamics on :math:`E(\tilde x, \cdot)` from :math:`\theta^+`. Its gradient is stopped, so no graph is kept.

    The published algorithm adds noise of standard deviation one at every Langevin step, thirty times the size of the
    weights; here the standard deviation is that of a temperature T, :math:`\sqrt{2 \lambda T}`. The published settings
    are ``k=100``, ``step_size=0.01``, ``sigma=0.001``, any epoch, and 2,000 steps of plain gradient descent; the
    defaults were chosen on validation images of Fashion-MNIST, with inference from the prior
    (``benchmarks/recipes/table6-paper.toml``, ``benchmarks/tune_experts.py``).
    """

    k: int = Field(default=20, ge=1, description="steps of the negative phase")
    step_size: float = Field(default=0.1, gt=0, description="step size λ of the negative phase")
    temperature: float = Field(
        default=0.0, ge=0, description="T of the noise in the negative phase; 0 is plain gradient descent"
    )
    sigma: float = Field(default=0.01, ge=0, description="standard deviation of parameters around the experts, Σ^(1/2)")
    pairs: int = Field(default=1, ge=1, description="positive and negative draws per step, N")
    min_epoch: float | None = Field(
        default=None, ge=0, description="first epoch of the experts to start from (0: untrained); 40 steps if not set"
    )
    max_epoch: float | None = Field(
        default=None, ge=0, description="last epoch to start from; the experts' last if only min_epoch is set"
    )
    energy: str = Field(default="cross-entropy", description="cross-entropy, focal-2 or multi-margin")
    reduction: Reduction = Field(default="mean", description="energy as a mean or a sum over the examples")
    strategy: str | None = Field(default=None, description="augmentation of every image; the paper's if not set")
    negative: Literal["langevin", "hmc", "kfac-laplace"] = Field(
        default="langevin", description="negative phase; hmc has stochastic gradients, as in the paper"
    )

    descent: ClassVar[Descent] = Descent(steps=200, optimiser="adam", lr=0.05, schedule="cosine")
    needs: ClassVar[Needs] = Needs(experts=True)
    shares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self.strategy, self.energy)
        if self.negative != "langevin" and self.temperature == 0:
            raise ValueError(f"{self.negative} draws at a temperature: set temperature above 0.")

    def init(self, task: Task, gen: Generator) -> NoState:
        # Raises if the experts have too few epochs.
        self._place(task.trajectories, torch.Generator())
        if self.pairs < task.share.size:
            raise AttarError(f"Processes share out the pairs of bpc-cd: set pairs to {task.share.size} or more.")
        return NoState()

    def loss(self, syn: Data, state: NoState, task: Task, gen: Generator) -> Loss:
        strategy = augment.resolve(self.strategy, syn.spec)
        experts = task.trajectories
        drawn = [self._place(experts, gen) for _ in range(self.pairs)]
        plus = torch.stack([experts.vector(*place) for place in drawn]).to(syn.x.device)
        plus = plus + self.sigma * normal(plus, gen)
        energy = Objective(task.network, self.energy, self.reduction)
        walk, potential = NEGATIVES[self.negative], EnergyPotential(energy, syn, strategy)
        own = slice(task.share.rank, None, task.share.size)
        start = plus if self.temperature else plus[own]  # noise is drawn for all pairs together
        minus = walk(potential, start, self.k, self.step_size, self.temperature, gen)
        minus = minus[own] if self.temperature else minus
        value, metrics = contrast(energy, augmented(syn, strategy, gen), plus[own], minus)
        part = len(minus) / self.pairs
        value, metrics = part * value, {name: task.share.total(part * found) for name, found in metrics.items()}
        trajectory, epoch = map(torch.tensor, drawn[0])
        return Loss(value, state, {**metrics, "trajectory": trajectory, "epoch": epoch})

    def _place(self, experts: Trajectories, gen: Generator) -> tuple[int, float]:
        """The trajectory and epoch to start from."""
        first = experts.early if self.min_epoch is None else self.min_epoch
        last = first if self.min_epoch is None and self.max_epoch is None else self.max_epoch
        return experts.draw(gen, first, last)


def contrast(energy: Energy, syn: Data, plus: Tensor, minus: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """The mean energy at ``plus`` minus that at ``minus``, and both as metrics."""
    high, low = energy.value(plus.detach(), syn).mean(), energy.value(minus.detach(), syn).mean()
    return high - low, {"positive": high.detach(), "negative": low.detach()}
