"""Pseudo-coresets by the reverse divergence."""

import pytest
import torch

import attar
from attar.bayes.rkl import BPCRKL, reverse
from attar.condense.contract import Task
from attar.condense.source import Pixels
from attar.core.errors import AttarError
from tests.bayes.small import DATA, NET
from tests.known import generator


def test_the_reverse_gradient_is_minus_the_covariance() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    slopes, gap = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([3.0, -1.0, 4.0])
    ours = slopes * x  # ∂ours/∂x = slopes
    (found,) = torch.autograd.grad(reverse(ours, gap + ours.detach()), x)
    covariance = ((slopes - slopes.mean()) * (gap - gap.mean())).sum() / 2
    assert torch.allclose(found, -covariance)


def test_the_method_trains_its_centre_and_renews_it() -> None:
    task, method = Task(DATA, NET, DATA.classes), BPCRKL(restart=2, net_steps=3, draws=4)
    source = Pixels(DATA.sample_per_class(1, generator()))
    state, gen, ages = method.init(task, generator()), generator(1), []
    for _ in range(5):
        state = method.loss(source(), state, task, gen).state
        ages.append(state.age)
    assert ages == [1, 2, 1, 2, 1]


def test_more_examples_than_a_class_has_are_refused() -> None:
    with pytest.raises(AttarError, match="ask for fewer"):
        attar.reduce(DATA, "bpc-rkl", per_class=17)
