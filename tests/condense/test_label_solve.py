"""Labels that kernel regression on the examples solves for."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import attar
from attar.condense.contract import NoState, Task
from attar.condense.kernels import FIXED, KernelRidge, closeness, rbf
from attar.condense.label_solve import LabelSolve, solve
from attar.nets import network
from tests.known import gaussians, generator


def centred(y: Tensor, classes: int = 3) -> Tensor:
    return torch.eye(classes, dtype=torch.float64)[y] - 1 / classes


def test_solved_labels_are_stationary_and_none_are_better() -> None:
    data, x, ridge = gaussians(16), gaussians(2, seed=5).x, 1e-3
    named = [FIXED["ntk1"], rbf]
    labels, left, _ = solve(x, data, named, ridge, batch=7)

    def error(labels: Tensor) -> Tensor:
        fits = [
            k(data.x, x)
            @ torch.linalg.solve(k(x, x) + ridge * k(x, x).diagonal().mean() * torch.eye(len(x)).double(), labels)
            for k in named
        ]
        return torch.stack([(centred(data.y) - fit).square().sum(1).mean() / 2 for fit in fits]).mean()

    at = labels.clone().requires_grad_()
    value = error(at)
    (slope,) = torch.autograd.grad(value, at)
    assert left.item() == pytest.approx(value.item())
    assert slope.abs().max().item() < 1e-9
    assert error(centred(gaussians(2).y)).item() > value.item()
    assert torch.allclose(labels, solve(x, data, named, ridge).labels)


def test_of_the_real_examples_themselves_the_solved_labels_are_their_own() -> None:
    data = gaussians(4)
    labels, left, _ = solve(data.x, data, [rbf], 0.0)
    assert torch.allclose(labels, centred(data.y), atol=1e-6)
    assert left.item() < 1e-12


def test_one_step_lands_on_the_solution_and_leaves_the_examples() -> None:
    data = gaussians(16)
    coreset = attar.reduce(data, "label-solve", per_class=2, network="linear")
    labels, *_ = solve(coreset.data.x, data, [FIXED["ntk1"]], 1e-6)
    assert torch.allclose(coreset.data.y.double(), labels + 1 / 3, atol=1e-5)
    assert all(bool((data.x == x).all(1).any()) for x in coreset.data.x)
    again = LabelSolve().loss(coreset.data, NoState(), Task(data, network("linear", (6,), 3), 3), generator())
    assert again.value.item() < 1e-8


def test_solved_labels_approximate_regression_on_all_data_better_than_those_of_the_data() -> None:
    data = gaussians(32)
    solved = attar.reduce(data, "label-solve", per_class=2, network="linear").data
    natural = replace(solved, y=solved.hard)
    whole = KernelRidge.fit(data, FIXED["ntk1"]).targets(data.x)
    near, far = (closeness(KernelRidge.fit(d, FIXED["ntk1"]).targets(data.x), whole, data) for d in (solved, natural))
    assert near.weak < far.weak
    assert near.strong < far.strong
