"""Gaussians, and divergences between them."""

from math import log

import pytest
import torch

from attar.core.errors import AttarError
from attar.truth import Gaussian, divergence, kl, squared_w2
from tests.known import generator

P = Gaussian(
    torch.tensor([1.0, -0.5, 0.25]).double(),
    torch.tensor([[1.0, 0.3, 0.0], [0.3, 2.0, 0.1], [0.0, 0.1, 0.5]]).double(),
)
Q = Gaussian(torch.tensor([0.5, 0.0, -1.0]).double(), torch.diag(torch.tensor([1.0, 4.0, 2.0]).double()))


def one(mean: float, deviation: float) -> Gaussian:
    return Gaussian(torch.tensor([mean]).double(), torch.tensor([[deviation**2]]).double())


def test_divergences_of_two_bells_worked_by_hand() -> None:
    found = divergence(one(1, 2), truth=one(0, 1))
    assert found["kl"] == pytest.approx((1 / 4 + 1 / 4 - 1) / 2 + log(2))
    assert found["reverse_kl"] == pytest.approx((4 + 1 - 1) / 2 - log(2))
    assert found["w2"] == pytest.approx(2**0.5)  # means 1 apart, deviations 1 apart


def test_divergences_are_zero_at_equality_and_w2_is_even_handed() -> None:
    assert divergence(P, P) == pytest.approx({"kl": 0, "reverse_kl": 0, "w2": 0}, abs=1e-6)
    assert float(squared_w2(P, Q)) == pytest.approx(float(squared_w2(Q, P)))
    assert min(divergence(P, Q).values()) > 0.1


def test_kl_is_the_mean_log_ratio_under_its_first_argument() -> None:
    draws = P.sample(200_000, generator())
    assert float(kl(P, Q)) == pytest.approx(float((P.log_density(draws) - Q.log_density(draws)).mean()), rel=0.02)


def test_w2_moves_axes_that_commute_as_if_each_were_alone() -> None:
    p = Gaussian(torch.zeros(2).double(), torch.diag(torch.tensor([1.0, 9.0]).double()))
    q = Gaussian(torch.tensor([3.0, 0.0]).double(), torch.diag(torch.tensor([4.0, 1.0]).double()))
    assert float(squared_w2(p, q)) == pytest.approx(9 + 1 + 4)


def test_many_draws_have_the_divergence_of_what_they_were_drawn_from() -> None:
    assert divergence(P.sample(100_000, generator()), Q) == pytest.approx(divergence(P, Q), rel=0.03)


def test_fewer_draws_than_dimensions_have_no_covariance() -> None:
    with pytest.raises(AttarError, match="more draws than dimensions"):
        Gaussian.of(torch.zeros(3, 3))
