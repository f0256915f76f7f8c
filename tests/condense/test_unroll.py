"""Unrolling in little memory: the same numbers as the plain graph."""

from typing import Any

import pytest
import torch
from torch import Tensor

from attar.condense.unroll import unroll
from tests.known import generator


def step(number: int, theta: Tensor, x: Tensor, size: Tensor) -> Tensor:
    """A gradient step on a loss that is not quadratic, and another one each time."""
    at = theta if theta.requires_grad else theta.requires_grad_()
    value = torch.tanh(x @ at + 0.1 * number).square().sum()
    (slope,) = torch.autograd.grad(value, at, create_graph=True)
    return at - size * slope


def inputs(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    gen = generator(seed)
    x = torch.randn(6, 3, generator=gen, dtype=torch.float64)
    return torch.randn(3, generator=gen, dtype=torch.float64), x, torch.tensor(0.05).double()


@pytest.mark.parametrize("steps", [1, 2, 5, 10])
@pytest.mark.parametrize(("graph", "thetas"), [(0, 0), (2**28, 0), (0, 2**26)])
def test_end_and_gradients_are_those_of_the_plain_graph(
    steps: int, graph: int, thetas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attar.condense.unroll.GRAPH", graph)
    monkeypatch.setattr("attar.condense.unroll.THETAS", thetas)
    ours, theirs = ([value.clone().requires_grad_() for value in inputs()] for _ in range(2))
    end = unroll(step, ours[0], (ours[1], ours[2]), steps)
    plain = theirs[0]
    for number in range(steps):
        plain = step(number, plain, theirs[1], theirs[2])
    assert torch.equal(end, plain)
    gradients = torch.autograd.grad(end.square().sum(), ours)
    for mine, other in zip(gradients, torch.autograd.grad(plain.square().sum(), theirs), strict=True):
        assert torch.allclose(mine, other, atol=1e-12)


def test_gradients_pass_gradcheck_through_five_steps() -> None:
    values = [value.clone().requires_grad_() for value in inputs(1)]
    assert torch.autograd.gradcheck(lambda theta, x, size: unroll(step, theta, (x, size), 5), values)


def test_no_steps_change_nothing() -> None:
    theta, x, size = inputs()
    assert torch.equal(unroll(step, theta, (x, size), 0), theta)


@pytest.mark.parametrize(
    ("graph", "thetas", "calls"), [(0, 0, 16 + 12 + 16), (2**28, 0, 16 + 12 + 3 + 4), (0, 16 * 3 * 8, 16 + 16)]
)
def test_steps_are_repeated_once_where_the_graph_of_several_or_all_parameters_are_small(
    graph: int, thetas: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attar.condense.unroll.GRAPH", graph)
    monkeypatch.setattr("attar.condense.unroll.THETAS", thetas)
    theta, x, size = (value.requires_grad_() for value in inputs())
    numbers: list[int] = []

    def counted(number: int, *values: Tensor) -> Tensor:
        numbers.append(number)
        return step(number, *values)

    unroll(counted, theta, (x, size), 16).sum().backward()
    assert len(numbers) == calls


def kept(steps: int) -> int:
    """Numbers that the way forward keeps for the way back."""
    theta, x, size = (value.requires_grad_() for value in inputs())
    end: Any = unroll(step, theta, (x, size), steps)
    return sum(tensor.numel() for tensor in end.grad_fn.saved_tensors)


@pytest.mark.parametrize(("steps", "vectors"), [(1, 1), (64, 8), (400, 20)])
def test_what_is_kept_grows_with_the_root_of_the_steps(
    steps: int, vectors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attar.condense.unroll.THETAS", 0)
    examples_and_step = 6 * 3 + 1
    assert kept(steps) == 3 * vectors + examples_and_step
