"""Distances vanish where predictions are equal, and sizes are those that were run."""

from math import log

import pytest
import torch

import attar
from attar.assess.distance import distance, distillation_ratio
from attar.core.errors import AttarError
from tests.known import digits, generator

P = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
Q = torch.tensor([[0.25, 0.75], [0.9, 0.1]])


def test_nothing_lies_between_equal_predictions() -> None:
    p = torch.randn(20, 5, generator=generator()).softmax(1)
    d = distance(p, p)
    assert (d.symmetric_kl, d.total_variation, d.agreement) == (0, 0, 1)


def test_a_case_worked_by_hand() -> None:
    d = distance(P, Q)
    forth = 0.5 * log(0.5 / 0.25) + 0.5 * log(0.5 / 0.75)
    back = 0.25 * log(0.25 / 0.5) + 0.75 * log(0.75 / 0.5)
    assert d.symmetric_kl == pytest.approx((forth + back) / 2 / 2)  # the second input adds nothing to the mean
    assert d.total_variation == pytest.approx(0.25 / 2)
    assert d.agreement == 0.5
    assert str(d) == "symmetric KL 0.069  total variation 0.125  agreement 0.500"


def test_opposite_certainties_are_as_far_as_can_be_and_still_finite() -> None:
    d = distance(torch.eye(2), torch.eye(2).flip(0))
    assert (d.total_variation, d.agreement) == (1, 0)
    assert d.symmetric_kl == pytest.approx(87.336, abs=1e-2)  # log 0 is cut at the smallest float


def test_it_is_symmetric_and_bounded_as_pinsker_says() -> None:
    p, q = (torch.randn(200, 6, generator=generator(s)).softmax(1).double() for s in (0, 1))
    forth, back = distance(p, q), distance(q, p)
    assert forth.symmetric_kl == pytest.approx(back.symmetric_kl, rel=1e-12)
    assert forth.total_variation == back.total_variation
    assert forth.agreement == back.agreement
    assert forth.total_variation <= (forth.symmetric_kl / 2) ** 0.5


def test_more_data_brings_a_posterior_nearer_to_that_of_all_data() -> None:
    train, x = digits().train, digits().test.x
    budget = attar.Training(steps=60)
    sets = train.sample_per_class(2, generator()), train.sample_per_class(30, generator()), train
    few, many, full = (attar.infer(d, draws=2, network="mlp-d1w32", training=budget).predict(x) for d in sets)
    assert distance(many, full).symmetric_kl < distance(few, full).symmetric_kl / 2
    assert distance(many, full).agreement > distance(few, full).agreement


def test_predictions_on_other_inputs_or_classes_are_refused() -> None:
    for other in (P[:1], torch.eye(3)[:2]):
        with pytest.raises(AttarError, match="two predictions on the same inputs"):
            distance(P, other)
    with pytest.raises(AttarError, match="sum to one"):
        distance(P, 2 * P)
    with pytest.raises(AttarError, match="n at least 1"):
        distance(torch.zeros(0, 2), torch.zeros(0, 2))


def test_the_ratio() -> None:
    assert distillation_ratio(0.45, 0.9) == pytest.approx(50)
    assert distillation_ratio(0.9, 0.9) == 100
    for bad in ((0.5, 0), (50, 0.9), (-0.1, 0.9), (0.5, float("nan"))):
        with pytest.raises(AttarError, match="between 0 and 1"):
            distillation_ratio(*bad)
