from collections.abc import Callable
from math import log

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import grad, jacrev

from attar.data import Data
from attar.infer.hmc import HMC
from attar.infer.potential import Potential
from attar.truth import Gaussian, GaussianMean, LinearRegression, LogisticRegression, Model, divergence, kl, squared_w2
from tests.known import generator

THETA = torch.tensor([1.0, -0.5, 0.25]).double()
NOISE = torch.tensor([[1.0, 0.3, 0.0], [0.3, 2.0, 0.1], [0.0, 0.1, 0.5]]).double()
PRIOR = Gaussian(torch.tensor([0.5, 0.0, -1.0]).double(), torch.diag(torch.tensor([1.0, 4.0, 2.0]).double()))
MODELS: dict[str, Model] = {
    "mean": GaussianMean(PRIOR, NOISE),
    "linear": LinearRegression(PRIOR, 0.7),
    "logistic": LogisticRegression(PRIOR),
}
of_models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
of_conjugate = pytest.mark.parametrize("model", [MODELS["mean"], MODELS["linear"]], ids=["mean", "linear"])


def weighted(model: Model, n: int = 6) -> Data:
    data = model.sample(THETA, n, generator())
    return Data(data.x, data.y, torch.rand(n, generator=generator(1), dtype=torch.float64) * 3)


def one(mean: float, deviation: float) -> Gaussian:
    return Gaussian(torch.tensor([mean]).double(), torch.tensor([[deviation**2]]).double())


@of_conjugate
def test_the_potential_is_that_of_the_exact_posterior(model: GaussianMean | LinearRegression) -> None:
    data = weighted(model)
    potential: Potential = model.potential(data)
    exact = model.posterior(data)
    assert torch.allclose(potential.gradient(exact.mean[None], generator()), torch.zeros(1, 3).double(), atol=1e-10)

    def value(theta: Tensor) -> Tensor:
        return potential.value(theta[None])[0]

    curvature = jacrev(grad(value))(THETA)
    assert torch.allclose(curvature, exact.precision, atol=1e-8)


@of_models
def test_potentials_take_chains_row_by_row_and_their_gradients_are_theirs(model: Model) -> None:
    potential = model.potential(weighted(model))
    chains = PRIOR.sample(4, generator(2))
    assert potential.value(chains).shape == (4,)
    assert torch.allclose(torch.stack([potential.value(c[None])[0] for c in chains]), potential.value(chains))
    slopes = [grad(lambda theta: potential.value(theta[None])[0])(c) for c in chains]
    assert torch.allclose(potential.gradient(chains, generator()), torch.stack(slopes), atol=1e-10)


@of_models
def test_an_example_that_counts_twice_is_two_examples(model: Model) -> None:
    data = model.sample(THETA, 4, generator())
    twice = Data(data.x, data.y, torch.tensor([2.0, 1, 0, 1]).double())
    spelt = data[torch.tensor([0, 0, 1, 3])]
    assert torch.allclose(model.log_likelihood(THETA[None], twice), model.log_likelihood(THETA[None], spelt))


@of_models
def test_likelihoods_are_those_that_data_is_drawn_from(model: Model) -> None:
    # At the truth the mean slope of the log likelihood is zero, up to the noise of 20,000 examples.
    data = model.sample(THETA, 20_000, generator())
    slopes = jacrev(lambda theta: model.log_likelihood(theta[None], data)[0] / len(data))(THETA)
    assert slopes.abs().max() < 0.05


def test_likelihoods_worked_by_hand() -> None:
    half = torch.tensor([[0.5]]).double()
    prior, data = one(0, 1), Data(torch.tensor([[2.0]]).double(), torch.tensor([1]))
    at_zero = GaussianMean(prior, torch.tensor([[4.0]]).double()).log_likelihood(half * 0, data)
    assert float(at_zero) == pytest.approx(-0.5 - log(2) - log(2 * torch.pi) / 2)
    assert float(LinearRegression(prior, 2.0).log_likelihood(half, data)) == pytest.approx(
        -log(2) - log(2 * torch.pi) / 2
    )
    assert float(LogisticRegression(prior).log_likelihood(half, data)) == pytest.approx(-log(1 + torch.e**-1))


@of_conjugate
@pytest.mark.parametrize("distance", [kl, squared_w2])
def test_the_distance_to_the_truth_has_gradients_in_pseudo_data_and_weights(
    model: GaussianMean | LinearRegression, distance: Callable[[Gaussian, Gaussian], Tensor]
) -> None:
    truth, pseudo = model.posterior(model.sample(THETA, 50, generator())), weighted(model, 4)
    assert pseudo.weights is not None

    def objective(x: Tensor, weights: Tensor) -> Tensor:
        return distance(model.posterior(Data(x, pseudo.y, weights)), truth)

    assert gradcheck(objective, (pseudo.x.clone().requires_grad_(), pseudo.weights.clone().requires_grad_()))


def test_the_posterior_of_no_examples_is_the_prior() -> None:
    for model in (MODELS["mean"], MODELS["linear"]):
        assert isinstance(model, GaussianMean | LinearRegression)
        nothing = Data(torch.zeros(0, 3).double(), torch.zeros(0).double())
        assert divergence(model.posterior(nothing), PRIOR) == pytest.approx(
            {"kl": 0, "reverse_kl": 0, "w2": 0}, abs=1e-6
        )


def test_two_independent_samplers_agree_on_logistic_regression() -> None:
    pytest.importorskip("pyro", reason="the extra 'reference' is not installed")
    model = LogisticRegression(Gaussian.standard(2, 2.0))
    data = model.sample(THETA[:2], 40, generator())
    before = torch.get_rng_state()
    reference = model.reference(data, generator(), draws=600, warmup=100)
    assert torch.equal(before, torch.get_rng_state())
    start = model.prior.sample(50, generator(3))
    hmc = (
        HMC(step=0.2, warmup=60, thin=3, temperature=1.0)
        .run(model.potential(data), start, 2000, generator())
        .theta.flatten(0, 1)
    )
    truth = Gaussian.of(reference)
    error = truth.covariance.diagonal().sqrt() * (1 / 200) ** 0.5  # a NUTS draw is worth a third of one, or more
    assert ((hmc.mean(0) - truth.mean) / error).abs().max() < 3
    assert torch.allclose(
        Gaussian.of(hmc).covariance, truth.covariance, rtol=0.3, atol=0.1 * float(truth.covariance.max())
    )


def test_the_reference_depends_on_its_generator_alone() -> None:
    pytest.importorskip("pyro", reason="the extra 'reference' is not installed")
    model = LogisticRegression(Gaussian.standard(2))
    data = model.sample(THETA[:2], 5, generator())
    first, again, other = (model.reference(data, generator(seed), draws=5, warmup=5) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
