"""The objectives against posteriors that are known: what they state, and where they lead."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from attar.bayes.energy import EnergyPotential
from attar.bayes.models import OBJECTIVES, Objective, Walk, distil, reverse, stochastic
from attar.bayes.negative import langevin
from attar.core.errors import AttarError
from attar.data import Data
from attar.infer.langevin import Langevin
from attar.truth import Gaussian, GaussianMean, LinearRegression, LogisticRegression, divergence, kl
from attar.truth.model import ModelEnergy
from tests.known import generator

Known = GaussianMean | LinearRegression


def mean_of_a_gaussian() -> tuple[Known, Data]:
    gen = generator(1)
    root = torch.randn(3, 3, generator=gen, dtype=torch.float64)
    model = GaussianMean(Gaussian.standard(3, 3.0), root @ root.T / 3 + torch.eye(3).double())
    return model, model.sample(torch.tensor([1.0, -2.0, 0.5]).double(), 200, gen)


def regression() -> tuple[Known, Data]:
    gen = generator(2)
    model = LinearRegression(Gaussian.standard(3, 2.0), 1.0)
    return model, model.sample(torch.randn(3, generator=gen, dtype=torch.float64), 200, gen)


PROBLEMS = {"mean": (mean_of_a_gaussian, 4, 10.0), "regression": (regression, 6, 3.0)}
of_problems = pytest.mark.parametrize("problem", PROBLEMS)
of_objectives = pytest.mark.parametrize("objective", OBJECTIVES)


def subset(data: Data, size: int, seed: int = 3) -> Data:
    """A random subset whose examples count n/size times."""
    some = data.sample(size, generator(seed))
    return replace(some, weights=some.x.new_full((size,), len(data) / size))


@of_problems
@of_objectives
def test_optimising_brings_the_posterior_to_the_true_one(objective: Objective, problem: str) -> None:
    make, size, times = PROBLEMS[problem]
    model, data = make()
    true = model.posterior(data)
    before = divergence(model.posterior(subset(data, size)), true)
    learnt = distil(model, data, size, generator(3), objective=objective, steps=120, lr=0.05, draws=32, k=10)
    after = divergence(model.posterior(learnt), true)
    assert after["kl"] < before["kl"] / times
    assert after["reverse_kl"] < before["reverse_kl"] / times
    assert learnt.weights is not None
    assert learnt.weights.tolist() == pytest.approx([len(data) / size] * size)


def slope(theta: Gaussian, model: Known, syn: Data) -> Tensor:
    """The gradient of the energy in the examples, averaged over a Gaussian, from its two moments alone."""
    assert syn.weights is not None
    weights = syn.weights[:, None]
    if isinstance(model, GaussianMean):
        return weights * torch.linalg.solve(model.noise, (syn.x - theta.mean).T).T
    second = theta.covariance + torch.outer(theta.mean, theta.mean)
    return -weights / model.noise**2 * (syn.y[:, None] * theta.mean - syn.x @ second)


def walked(start: Gaussian, target: Gaussian, walk: Walk) -> Gaussian:
    """Where k Langevin steps towards a Gaussian take another, exactly."""
    pull = torch.eye(len(start.mean)).double() - walk.step_size * target.precision
    mean, covariance = start.mean, start.covariance
    for _ in range(walk.k):
        mean = target.mean + pull @ (mean - target.mean)
        covariance = pull @ covariance @ pull.T + 2 * walk.step_size * torch.eye(len(mean)).double()
    return Gaussian(mean, covariance)


def stated(objective: Objective, model: Known, syn: Data, data: Data, walk: Walk) -> Tensor:
    """The gradient in the examples that the paper states, without sampling."""
    true, ours = model.posterior(data), model.posterior(syn)
    if objective == "cd":
        return slope(true, model, syn) - slope(walked(true, ours, walk), model, syn)
    if objective == "fkl":
        return slope(true, model, syn) - slope(ours, model, syn)
    x = syn.x.clone().requires_grad_()
    divergence = kl(model.posterior(replace(syn, x=x)), true)
    return torch.autograd.grad(divergence, x)[0]


def test_the_reverse_gradient_is_minus_the_covariance() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    slopes, gap = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([3.0, -1.0, 4.0])
    ours = slopes * x  # ∂ours/∂x = slopes
    (found,) = torch.autograd.grad(reverse(ours, gap + ours.detach()), x)
    covariance = ((slopes - slopes.mean()) * (gap - gap.mean())).sum() / 2
    assert torch.allclose(found, -covariance)


@of_problems
@pytest.mark.parametrize("objective", ["cd", "fkl", "rkl", "vb"])
def test_the_stochastic_gradient_is_the_stated_one(objective: Objective, problem: str) -> None:
    make, size, _ = PROBLEMS[problem]
    model, data = make()
    syn, walk = subset(data, size), Walk(20_000, 5, 1e-3)
    x = syn.x.clone().requires_grad_()
    energy = ModelEnergy(model)

    def sample(given: Data, n: int, gen: torch.Generator) -> Tensor:
        return model.posterior(given).sample(n, gen)

    value = stochastic(objective, energy, replace(syn, x=x), data, walk, sample, generator(4))
    (ours,) = torch.autograd.grad(value, x)
    exact = stated(objective, model, syn, data, walk)
    assert torch.cosine_similarity(ours.flatten(), exact.flatten(), 0) > 0.95
    assert ours.norm() / exact.norm() == pytest.approx(1, abs=0.25)


@of_problems
def test_the_forward_gradient_is_that_of_the_divergence(problem: str) -> None:
    make, size, _ = PROBLEMS[problem]
    model, data = make()
    syn = subset(data, size)
    x = syn.x.clone().requires_grad_()
    (exact,) = torch.autograd.grad(kl(model.posterior(data), model.posterior(replace(syn, x=x))), x)
    assert torch.allclose(stated("fkl", model, syn, data, Walk(1, 1, 1.0)), exact, atol=1e-8)


@of_problems
def test_the_wasserstein_gradient_is_that_of_the_plain_walk(problem: str) -> None:
    make, size, _ = PROBLEMS[problem]
    model, data = make()
    syn, walk = subset(data, size), Walk(1, 7, 1e-3)
    x = syn.x.clone().requires_grad_()
    value = stochastic("w", ModelEnergy(model), replace(syn, x=x), data, walk, lambda *_: torch.empty(0), generator(5))
    (ours,) = torch.autograd.grad(value, x)

    again = syn.x.clone().requires_grad_()
    start = model.prior.sample(1, generator(5))[0]
    ends = []
    for posterior in (model.posterior(replace(syn, x=again)), model.posterior(data)):
        theta = start  # descent on a quadratic potential, whose slope is the precision times the way from the mean
        for _ in range(walk.k):
            theta = theta - walk.step_size * posterior.precision @ (theta - posterior.mean)
        ends.append(theta)
    plain = (ends[0] - ends[1]).square().sum() / (start - ends[1]).square().sum()
    (exact,) = torch.autograd.grad(plain, again)
    assert torch.allclose(value, plain)
    assert torch.allclose(ours, exact, rtol=1e-6, atol=1e-10)


@of_problems
def test_contrastive_divergence_is_zero_where_both_posteriors_are_one(problem: str) -> None:
    make, _, _ = PROBLEMS[problem]
    model, data = make()
    syn = replace(data, weights=torch.ones(len(data)).double())
    x = syn.x.clone().requires_grad_()
    energy, walk, gen = ModelEnergy(model), Walk(4000, 5, 1e-5), generator(6)
    plus = model.posterior(data).sample(walk.draws, gen)
    minus = langevin(EnergyPotential(energy, syn), plus, walk.k, walk.step_size, 1.0, gen)
    each = []
    for part in (plus, minus):  # both ends of one walk share their draws, so the noise of the difference is its own
        each.append(torch.autograd.grad(energy.value(part, replace(syn, x=x)).mean(), x)[0])
    away = model.posterior(subset(data, 4)).sample(walk.draws, generator(6))
    moved = torch.autograd.grad(energy.value(away, replace(syn, x=x)).mean(), x)[0] - each[0]
    assert (each[0] - each[1]).norm() < 0.02 * moved.norm()


def test_langevin_of_the_negative_phase_is_the_sampler_of_inference() -> None:
    model, data = mean_of_a_gaussian()
    potential = EnergyPotential(ModelEnergy(model), data)
    start = model.prior.sample(3, generator())
    ours = langevin(potential, start, 4, 1e-3, 0.5, generator(1))
    chain = Langevin(step=2e-3, temperature=0.5, warmup=0).transitions(potential, start, generator(1))
    for _ in range(4):
        theirs = next(chain).theta
    assert torch.allclose(ours, theirs)


def test_learnt_weights_take_the_size_of_the_data_and_help() -> None:
    model, data = mean_of_a_gaussian()
    true = model.posterior(data)
    learnt = distil(model, data, 1, generator(3), weights="learnt", steps=200, lr=0.05)
    assert learnt.weights is not None
    assert float(learnt.weights.sum()) == pytest.approx(len(data), rel=0.2)
    assert divergence(model.posterior(learnt), true)["kl"] < 0.1


def test_a_model_without_a_closed_form_needs_a_way_to_draw() -> None:
    model = LogisticRegression(Gaussian.standard(2))
    data = model.sample(torch.ones(2).double(), 50, generator())
    with pytest.raises(AttarError, match="sample="):
        distil(model, data, 4, generator())

    def sample(given: Data, n: int, gen: torch.Generator) -> Tensor:
        walker = Langevin(step=0.02, temperature=1.0, warmup=30, thin=1)
        return walker.run(model.potential(given), model.prior.sample(n, gen), n, gen).theta.flatten(0, 1)

    learnt = distil(model, data, 4, generator(), steps=3, draws=8, sample=sample)
    assert bool(torch.isfinite(learnt.x).all())
    assert learnt.y.dtype == torch.int64


@pytest.mark.parametrize("size", [0, 201])
def test_sizes_that_cannot_be_are_refused(size: int) -> None:
    model, data = mean_of_a_gaussian()
    with pytest.raises(AttarError, match=r"1\.\.200"):
        distil(model, data, size, generator())
    with pytest.raises(AttarError, match="objective"):
        distil(model, data, 2, generator(), objective="kl")  # type: ignore[arg-type]
