"""Pseudo-coresets by the reverse divergence."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import attar
from attar.bayes.rkl import BPCRKL, narrow
from attar.condense.contract import Task
from attar.condense.source import Pixels
from attar.core.errors import AttarError
from attar.data import Data
from attar.nets import network
from attar.nets.objective import Objective
from attar.truth import Gaussian, GaussianMean, kl
from attar.truth.model import ModelEnergy
from tests.bayes.small import DATA, NET
from tests.bayes.test_models import PROBLEMS, Known, subset
from tests.known import digits, generator


def exact_covariance(model: Known, center: Tensor, sigma: float, syn: Data, data: Data) -> Tensor:
    """Cov[∇ₓ ℓ̃, ℓ − ℓ̃] under N(center, σ²), where both are quadratic in θ: σ² ∇aᵀ∇b + σ⁴/2 tr(∇²a ∇²b)."""

    def gap(theta: Tensor) -> Tensor:
        ours, theirs = (model.log_likelihood(theta[None], part)[0] for part in (syn, data))
        return theirs - ours

    def pull(theta: Tensor) -> Tensor:
        x = syn.x.clone().requires_grad_()
        value = model.log_likelihood(theta[None], replace(syn, x=x))[0]
        return torch.autograd.grad(value, x, create_graph=True)[0].flatten()

    slope, bend = torch.func.grad(gap)(center), torch.autograd.functional.hessian(gap, center)
    slopes = torch.autograd.functional.jacobian(pull, center)
    found = []
    for k, row in enumerate(slopes):
        second = torch.autograd.functional.hessian(lambda theta, k=k: pull(theta)[k], center)
        found.append(sigma**2 * row @ slope + sigma**4 / 2 * (second * bend).sum())
    return torch.stack(found).reshape(syn.x.shape)


def limit(model: Known, center: Tensor, syn: Data, data: Data) -> Tensor:
    """The gradient that the method follows."""
    x = syn.x.clone().requires_grad_()
    return torch.autograd.grad(narrow(LikelihoodEnergy(model), center, replace(syn, x=x), data), x)[0]


class LikelihoodEnergy(ModelEnergy):
    """Minus the log-likelihood, as that of networks: the prior cancels in ℓ − ℓ̃."""

    def value(self, theta: Tensor, batch: Data) -> Tensor:
        return -self.model.log_likelihood(theta.reshape(1, -1), batch)[0]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_it_is_the_exact_covariance_in_the_limit_of_a_narrow_posterior(problem: str) -> None:
    make, size, _ = PROBLEMS[problem]
    model, data = make()
    syn = subset(data, size)
    center = model.posterior(syn).mean
    ours, errors = limit(model, center, syn, data), []
    for sigma in (0.3, 0.03, 0.003):
        exact = -exact_covariance(model, center, sigma, syn, data) / sigma**2
        errors.append(float((ours - exact).norm() / exact.norm()))
    if isinstance(model, GaussianMean):  # the pull is linear in θ, so the limit is exact for every width
        assert max(errors) < 1e-10
    else:  # the rest is of order σ²
        assert errors[1] == pytest.approx(errors[0] / 100, rel=0.2)
        assert errors[2] == pytest.approx(errors[1] / 100, rel=0.2)
        assert errors[2] < 1e-3


def test_it_is_the_gradient_of_the_divergence_where_the_posterior_is_round() -> None:
    gen = generator(1)
    model = GaussianMean(Gaussian.standard(3, 3.0), torch.eye(3).double())
    data = model.sample(torch.tensor([1.0, -2.0, 0.5]).double(), 200, gen)
    syn = subset(data, 4)
    ours = model.posterior(syn)
    x = syn.x.clone().requires_grad_()
    (exact,) = torch.autograd.grad(kl(model.posterior(replace(syn, x=x)), model.posterior(data)), x)
    assert torch.allclose(ours.covariance[0, 0] * limit(model, ours.mean, syn, data), exact, rtol=1e-8)


def test_gradients_of_independent_batches_agree() -> None:
    split, method = digits(), BPCRKL()
    net = network("convnet-d2w16", split.shape, 10)
    task = Task(split.train, net, 10)
    source, state = Pixels(split.train.sample_per_class(1, generator())), method.init(task, generator())
    for _ in range(3):
        state = method.loss(source(), state, task, generator(1)).state
    syn = source()
    found = []
    for seed in range(6):
        real = replace(task.data.sample(method.batch, generator(seed)), weights=None)
        found.append(torch.autograd.grad(narrow(Objective(net), state.theta, syn, real), syn.x, retain_graph=True)[0])
    flat = torch.stack(found).flatten(1)
    cosines = torch.nn.functional.cosine_similarity(flat[:, None], flat[None], dim=2)
    assert float((cosines.sum() - 6) / 30) > 0.5


def test_the_method_trains_its_centre_and_renews_it() -> None:
    task, method = Task(DATA, NET, DATA.classes), BPCRKL(restart=2, net_steps=3)
    source = Pixels(DATA.sample_per_class(1, generator()))
    state, gen, ages = method.init(task, generator()), generator(1), []
    for _ in range(5):
        state = method.loss(source(), state, task, gen).state
        ages.append(state.age)
    assert ages == [1, 2, 1, 2, 1]


def test_more_examples_than_a_class_has_are_refused() -> None:
    with pytest.raises(AttarError, match="ask for fewer"):
        attar.reduce(DATA, "bpc-rkl", per_class=17)
