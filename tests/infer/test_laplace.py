from math import exp
from typing import Any

import pytest
import torch
from torch.distributions import MultivariateNormal

from attar.core.errors import AttarError
from attar.infer.contract import Draws
from attar.infer.laplace import NO_EVIDENCE, Laplace, best_precision, gain
from attar.infer.potential import Prior
from attar.nets import network
from attar.nets.train import Training, train
from attar.truth import Gaussian, LinearRegression
from tests.known import gaussians, generator

BUDGET = Training(steps=20)
DATA = gaussians(8)
NET = network("mlp-d1w8", DATA.shape, DATA.classes)


def infer(draws: int = 3, budget: Training = BUDGET, start: torch.Tensor | None = None, **options: Any) -> Draws:
    return Laplace(**options).infer(DATA, NET, budget, draws, generator(), start)


def test_the_evidence_of_linear_regression_is_exact() -> None:
    noise, precision = 0.5, 2.0
    model = LinearRegression(Gaussian.standard(3, precision**-0.5), noise)
    data = model.sample(torch.tensor([1.0, -2.0, 0.5]).double(), 10, generator())
    at = model.posterior(data).mean
    values = torch.linalg.eigvalsh(data.x.T @ data.x / noise**2)
    found = float(model.log_likelihood(at[None], data)) + gain(values, float(at.square().sum()), precision)
    marginal = data.x @ data.x.T / precision + noise**2 * torch.eye(10).double()
    assert found == pytest.approx(float(MultivariateNormal(torch.zeros(10).double(), marginal).log_prob(data.y)))


@pytest.mark.parametrize("distance", [0.01, 3.0, 500.0])
def test_the_best_precision_is_that_of_a_grid(distance: float) -> None:
    values = torch.rand(30, generator=generator(), dtype=torch.float64).exp() ** 8
    grid = torch.linspace(-18, 18, 3601).double().exp()
    found = max(grid.tolist(), key=lambda precision: gain(values, distance, precision))
    assert best_precision(values, distance) == pytest.approx(found, rel=2 * (exp(0.01) - 1))


def test_the_last_layer_s_draws_have_the_covariance_that_the_hessian_gives() -> None:
    precision = 2.0
    posterior = infer(draws=20_000, precision=precision)
    mode = train(NET, DATA, BUDGET, generator(), 1)[0]
    index = NET.head_index().flatten()
    outside = torch.ones(NET.size, dtype=torch.bool).index_fill(0, index, False)
    assert torch.equal(posterior.theta[:, outside], mode[outside].expand(20_000, -1))

    def loss(head: torch.Tensor) -> torch.Tensor:
        logits = NET(mode.double().index_put((index,), head), DATA.x.double())
        return torch.nn.functional.cross_entropy(logits, DATA.y, reduction="sum")

    hessian = torch.func.jacrev(torch.func.grad(loss))(mode[index].double())
    exact = torch.linalg.inv(hessian + torch.diag(precision / Prior(NET).std[index].double().square()))
    drawn = Gaussian.of(posterior.theta[:, index])
    scale = exact.diagonal().sqrt()
    assert ((drawn.mean - mode[index]) / scale).abs().max() < 0.04
    assert ((drawn.covariance - exact) / scale / scale[:, None]).abs().max() < 0.05


@pytest.mark.parametrize("structure", ["last-layer", "diagonal", "kron"])
def test_data_that_stands_for_more_examples_gives_narrower_draws_and_a_stronger_prior_too(structure: str) -> None:
    def width(**options: Any) -> float:
        return float(infer(draws=200, structure=structure, **options).theta.var(0).sum())

    usual = width(precision=1.0)
    assert width(precision=1.0, examples=100 * len(DATA)) < 0.9 * usual
    assert width(precision=100.0) < 0.1 * usual


def test_evidence_chooses_a_precision_but_no_log_evidence_is_claimed() -> None:
    fixed, chosen = infer(precision=1.0).notes, infer(evidence=True).notes
    assert fixed["precision"] == 1.0
    assert chosen["precision"] != 1.0
    assert chosen["log_evidence"] == fixed["log_evidence"] == NO_EVIDENCE  # it is no mode of the stated posterior


def test_it_starts_where_it_is_told() -> None:
    start = torch.full((2, NET.size), 0.3)
    posterior = infer(budget=Training(steps=1, lr=1e-9), start=start, precision=1e12)
    assert torch.allclose(posterior.theta, start[:1].expand(3, -1), atol=1e-4)


def test_a_loss_whose_curvature_it_does_not_know_is_refused() -> None:
    with pytest.raises(AttarError, match="squared: use the sampler"):
        infer(budget=Training(steps=2, loss="squared"))
