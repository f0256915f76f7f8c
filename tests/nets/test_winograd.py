from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attar.nets.winograd import Winograd, convolve
from tests.truth import generator


def problem(n: int, inside: int, outside: int, h: int, w: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    gen = generator(seed)
    shapes = (n, inside, h, w), (outside, inside, 3, 3), (outside,)
    x, weight, bias = (torch.randn(shape, generator=gen, requires_grad=True) for shape in shapes)
    return x, weight, bias


@pytest.mark.parametrize("sizes", [(1, 1, 1, 4, 4), (3, 5, 7, 8, 12), (2, 64, 64, 16, 16)])
def test_it_is_a_convolution_with_all_its_gradients(sizes: tuple[int, int, int, int, int]) -> None:
    inputs = problem(*sizes)
    exact = [t.detach().double().requires_grad_() for t in inputs]
    y, wanted = convolve(*inputs), F.conv2d(*exact, padding=1)
    weights = torch.randn(wanted.shape, generator=generator(1))
    found = [y, *torch.autograd.grad(y, inputs, weights)]
    truth = [wanted, *torch.autograd.grad(wanted, exact, weights.double())]
    for a, b in zip(found, truth, strict=True):
        assert float((a - b).detach().norm() / b.detach().norm()) < 1e-5


def test_a_bias_is_not_needed_and_an_input_may_be_constant() -> None:
    x, weight, _ = problem(2, 3, 4, 8, 8)
    y = convolve(x.detach(), weight)
    assert torch.allclose(y, F.conv2d(x, weight, padding=1), atol=1e-4)
    assert torch.autograd.grad(y.sum(), weight)[0].shape == weight.shape


def test_a_second_derivative_is_refused_and_not_wrong() -> None:
    x, weight, bias = problem(1, 2, 2, 4, 4)
    (slope,) = torch.autograd.grad(convolve(x, weight, bias).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_large_convolutions_of_any_module_are_done_this_way() -> None:
    x, weight, bias = problem(64, 64, 64, 4, 4)
    with Winograd():
        ours = F.conv2d(x, weight, bias, (1, 1), 1)
    direct = F.conv2d(x, weight, bias, (1, 1), 1)
    assert torch.allclose(ours, direct, atol=1e-3)
    assert torch.equal(ours, convolve(x, weight, bias))
    assert not torch.equal(ours, direct)  # the rounding tells them apart


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((64, 64, 64, 4, 4), {"stride": (2, 2), "padding": (1, 1)}),
        ((64, 64, 64, 4, 4), {"stride": (1, 1), "padding": (0, 0)}),
        ((64, 64, 64, 8, 8), {"stride": (1, 1), "padding": (2, 2), "dilation": (2, 2)}),
        ((64, 64, 64, 7, 7), {"stride": (1, 1), "padding": (1, 1)}),  # no whole tiles
        ((64, 8, 64, 4, 4), {"stride": (1, 1), "padding": (1, 1)}),  # few channels
        ((2, 64, 64, 4, 4), {"stride": (1, 1), "padding": (1, 1)}),  # few tiles
    ],
)
def test_what_does_not_fit_or_gain_is_left_alone(sizes: Any, options: dict[str, Any]) -> None:
    inputs = problem(*sizes)
    arguments = [options.get("stride", 1), options.get("padding", 0), options.get("dilation", 1)]
    with Winograd():
        ours = F.conv2d(*inputs, *arguments)
    assert torch.equal(ours, F.conv2d(*inputs, *arguments))


def test_other_dtypes_are_left_alone() -> None:
    inputs = [t.double() for t in problem(64, 64, 64, 4, 4)]
    with Winograd():
        ours = F.conv2d(*inputs, (1, 1), (1, 1))
    assert torch.equal(ours, F.conv2d(*inputs, (1, 1), (1, 1)))
