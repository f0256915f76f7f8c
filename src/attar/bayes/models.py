"""Pseudo-coresets for models whose posterior can be sampled: the same objectives without networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor

from attar.bayes.cd import contrast
from attar.bayes.energy import EnergyPotential
from attar.bayes.negative import langevin
from attar.condense.trajectory import distance, train_through
from attar.core.errors import AttarError, unknown
from attar.data import Data
from attar.truth import Model
from attar.truth.model import ModelEnergy, weights_of

Objective = Literal["cd", "rkl", "fkl", "w", "vb"]
OBJECTIVES = ("cd", "rkl", "fkl", "w", "vb")
Sample = Callable[[Data, int, Generator], Tensor]  # data, draws → (draws, d) from its posterior


class Walk(NamedTuple):
    """Posterior draws per step, and the settings of chains."""

    draws: int
    k: int
    step_size: float


def distil(
    model: Model,
    data: Data,
    size: int,
    gen: Generator,
    *,
    objective: Objective = "rkl",
    weights: Literal["even", "learnt"] = "even",
    steps: int = 500,
    lr: float = 0.05,
    draws: int = 64,
    k: int = 20,
    step_size: float | None = None,
    sample: Sample | None = None,
) -> Data:
    r"""Learn ``size`` examples, and targets if those are floats, whose posterior approximates that of all data.

    With weights ``even`` every example counts n/size times; ``learnt`` weights start there and stay positive: with
    ``rkl`` that is pseudocoreset variational inference (Manousakas et al., NeurIPS 2020).

    Args:
        model: A model of ``attar.truth``, or one of your own.
        data: All data.
        size: Examples to learn; they start as a random subset.
        gen: Random generator.
        objective: ``cd``, ``rkl``, ``fkl``, ``w`` or ``vb``, as in ``bpc-cd`` to ``bpc-w`` and ``vbpc`` for networks.
        weights: ``even`` or ``learnt``.
        steps: Updates by Adam with a cosine schedule.
        lr: Its first learning rate.
        draws: Posterior draws per step.
        k: Steps of the negative phase (``cd``) or of the inner training (``w``).
        step_size: Of these steps; by default half the inverse of the potential's largest curvature.
        sample: How to draw from the posterior of given data; by default the model's own ``posterior``, which ``vb``
            requires.
    """
    if objective not in OBJECTIVES:
        raise unknown("objective", objective, OBJECTIVES)
    if not 1 <= size <= len(data):
        raise AttarError(f"size must lie in 1..{len(data)}, the number of examples, got {size}.")
    sample = sample or (lambda of, n, gen: model.posterior(of).sample(n, gen))
    energy, syn = ModelEnergy(model), _start(data, size, gen)
    walk = Walk(draws, k, step_size or float(0.5 / _curvature(energy, data, model.prior.mean)))
    learnt = [syn.x, *([syn.y] if syn.y.is_floating_point() else [])]
    even = syn.x.new_full((size,), len(data) / size)
    log_weights = even.log()
    learnt += [log_weights] if weights == "learnt" else []
    optimiser = torch.optim.Adam([tensor.requires_grad_() for tensor in learnt], lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        syn = replace(syn, weights=log_weights.exp() if weights == "learnt" else even)
        value = stochastic(objective, energy, syn, data, walk, sample, gen)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        schedule.step()
    final = log_weights.detach().exp() if weights == "learnt" else even
    return Data(syn.x.detach(), syn.y.detach(), final, data.spec)


def stochastic(
    objective: Objective, energy: ModelEnergy, syn: Data, data: Data, walk: Walk, sample: Sample, gen: Generator
) -> Tensor:
    """One stochastic evaluation of an objective; its gradient in the examples is that of the method."""
    still = replace(syn, x=syn.x.detach(), y=syn.y.detach(), weights=weights_of(syn).detach())
    if objective == "w":
        return _distance(energy, syn, data, walk, gen)
    if objective == "rkl":
        theta = sample(still, walk.draws, gen).detach()
        ours, theirs = (energy.model.log_likelihood(theta, d) for d in (syn, data))
        return reverse(ours, theirs)
    if objective == "vb":  # the evidence bound up to a constant: E_q[-log p(data, θ)] minus the entropy of q
        q = energy.model.posterior(syn)
        return energy.value(q.sample(walk.draws, gen), data).mean() - q.factor.diagonal().log().sum()
    plus = sample(data, walk.draws, gen)
    if objective == "fkl":
        return contrast(energy, syn, plus, sample(still, walk.draws, gen))[0]
    minus = langevin(EnergyPotential(energy, still), plus, walk.k, walk.step_size, 1.0, gen)
    return contrast(energy, syn, plus, minus)[0]


def reverse(ours: Tensor, theirs: Tensor) -> Tensor:
    r"""A value whose gradient is that of the reverse divergence, from log-likelihoods ``(draws,)`` at draws of the
    examples' posterior.

    .. math:: -\frac{1}{S-1} \sum_s (h_s - \bar h)\, \tilde\ell(\theta_s), \quad h = \ell - \tilde\ell
        \;\text{held constant}
    """
    gap = (theirs - ours).detach()
    return -((gap - gap.mean()) * ours).sum() / (len(ours) - 1)


def _distance(energy: ModelEnergy, syn: Data, data: Data, walk: Walk, gen: Generator) -> Tensor:
    start = energy.model.prior.sample(1, gen)[0]
    size = torch.tensor(walk.step_size).to(start)
    reached, target = (train_through(energy, start, d, size, [lambda seen: seen] * walk.k) for d in (syn, data))
    return distance(reached, target.detach(), start)


def _start(data: Data, size: int, gen: Generator) -> Data:
    some = data.sample(size, gen)
    return Data(some.x.clone(), some.y.clone(), None, data.spec)


def _curvature(energy: ModelEnergy, data: Data, theta: Tensor) -> Tensor:
    hessian = torch.autograd.functional.hessian(lambda t: energy.value(t[None], data)[0], theta.clone())
    largest: Tensor = torch.linalg.eigvalsh(hessian)[-1]
    return largest
