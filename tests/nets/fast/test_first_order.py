from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attar.nets import network
from attar.nets.fast import first_order
from attar.nets.fast.first_order import conv2d, forwards
from attar.nets.fast.winograd import convolve
from tests.known import generator


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


def test_an_activation_may_follow_in_place() -> None:
    x, weight, bias = problem(2, 3, 4, 8, 8)
    found = torch.autograd.grad(torch.relu_(convolve(x, weight, bias)).sum(), weight)[0]
    wanted = torch.autograd.grad(torch.relu(F.conv2d(x, weight, bias, padding=1)).sum(), weight)[0]
    assert torch.allclose(found, wanted, atol=1e-3)


PAD = ((1, 1), (1, 1), (1, 1), 1)  # stride, padding, dilation, groups


@pytest.mark.parametrize("channels", [1, 64])
def test_a_second_derivative_is_refused_and_not_wrong(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_order, "GRAY", 1)
    x, weight, bias = problem(64, channels, 64, 4, 4)
    y = conv2d(x if channels > 1 else x.detach(), weight, bias, *PAD)
    (slope,) = torch.autograd.grad(y.square().sum(), weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_large_convolutions_are_done_this_way() -> None:
    x, weight, bias = problem(64, 64, 64, 4, 4)
    ours, direct = conv2d(x, weight, bias, *PAD), F.conv2d(x, weight, bias, *PAD)
    assert torch.allclose(ours, direct, atol=1e-3)
    assert torch.equal(ours, convolve(x, weight, bias))
    assert not torch.equal(ours, direct)  # the rounding tells them apart


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((64, 64, 64, 4, 4), ((2, 2), (1, 1), (1, 1), 1)),
        ((64, 64, 64, 4, 4), ((1, 1), (0, 0), (1, 1), 1)),
        ((64, 64, 64, 8, 8), ((1, 1), (2, 2), (2, 2), 1)),
        ((64, 64, 64, 7, 7), PAD),  # no whole tiles
        ((64, 8, 64, 4, 4), PAD),  # few channels
        ((2, 64, 64, 4, 4), PAD),  # few tiles
    ],
)
def test_what_does_not_fit_or_gain_is_left_alone(sizes: Any, options: Any) -> None:
    inputs = problem(*sizes)
    assert torch.equal(conv2d(*inputs, *options), F.conv2d(*inputs, *options))


def test_other_dtypes_are_left_alone() -> None:
    x, weight, bias = (t.double() for t in problem(64, 64, 64, 4, 4))
    assert torch.equal(conv2d(x, weight, bias, *PAD), F.conv2d(x, weight, bias, *PAD))


@pytest.mark.parametrize("options", [{"padding": 3}, {"stride": 2, "padding": (0, 2)}, {"dilation": 2}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gray_images_have_the_same_gradients(
    options: dict[str, Any], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_order, "GRAY", 1)
    layer = nn.Conv2d(1, 5, 3, dtype=dtype, **options)
    x = torch.randn(4, 1, 9, 8, generator=generator(), dtype=dtype)
    ours, direct = forwards(layer)[layer](x), layer(x)
    assert torch.equal(ours, direct)
    assert ours.grad_fn is not None
    assert ours.grad_fn.name() == "_GrayBackward"
    weights = torch.randn(direct.shape, generator=generator(1), dtype=dtype)
    found, wanted = (torch.autograd.grad(y, [layer.weight, layer.bias], weights) for y in (ours, direct))
    for a, b in zip(found, wanted, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{"bias": False}, {"in_channels": 2}, {}])
def test_other_first_layers_are_left_alone(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_order, "GRAY", 1 if options else 10**9)  # or too few images to gain
    layer = nn.Conv2d(**{"in_channels": 1, "out_channels": 5, "kernel_size": 3, **options})
    x = torch.randn(2, layer.in_channels, 5, 5, generator=generator())
    ours = forwards(layer)[layer](x)
    assert torch.equal(ours, layer(x))
    assert ours.grad_fn is not None
    assert ours.grad_fn.name() != "_GrayBackward"


def test_gray_images_that_are_learnt_keep_their_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_order, "GRAY", 1)
    x, weight, bias = problem(2, 1, 3, 6, 6)
    y = conv2d(x, weight, bias, *PAD)
    assert torch.autograd.grad(y.sum(), x)[0].shape == x.shape


class Own(nn.Conv2d):
    """A layer that does something of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Standardised(nn.Conv2d):
    """A layer that changes its weights on the way."""

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return super()._conv_forward(x, weight - weight.mean(), bias)


def test_only_plain_layers_are_replaced() -> None:
    patched = nn.Conv2d(1, 2, 3)
    vars(patched)["forward"] = lambda x: x
    plain = [nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 3, padding=1, stride=2)]
    other = [nn.Conv2d(1, 2, 3, padding="same"), nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular")]
    module = nn.Sequential(*plain, *other, Own(1, 2, 3), Standardised(1, 2, 3), patched, nn.Linear(2, 2))
    assert list(forwards(module)) == plain


def test_fast_features_and_their_gradient_in_the_images_are_the_plain_ones() -> None:
    net = network("convnet-d2w64", (3, 32, 32), 4)
    gen = generator()
    theta, x = net.init(gen), torch.randn(8, 3, 32, 32, generator=gen)
    # Every other channel is on, and none is near the kink of the ReLU, where rounding decides on some processors.
    for norm in ("body.1", "body.5"):
        net.unflatten(theta)[f"{norm}.bias"].copy_(torch.tensor([10.0, -10.0]).repeat(32))
    found = []
    for fast in (False, True):
        leaf = x.clone().requires_grad_()
        features = net.features(theta, leaf, fast=fast)
        features.square().sum().backward()  # type: ignore[no-untyped-call]
        assert leaf.grad is not None
        found.append((features.detach(), leaf.grad))
    (plain, slope), (quick, quick_slope) = found
    assert not torch.equal(plain, quick)  # by another algorithm
    assert torch.allclose(plain, quick, atol=1e-4)
    assert torch.allclose(slope, quick_slope, atol=1e-4 * float(slope.abs().max()))
