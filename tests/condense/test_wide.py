"""Kernels of convolutional networks: the limits of wide ones, in chunks, with safe derivatives."""

from math import sqrt

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import grad, vmap
from torch.nn.functional import conv2d

import attar
from attar.condense import wide
from attar.condense.kernels import FIXED, KernelRidge
from attar.condense.wide import BIAS, WEIGHT, convolutional, fully_connected
from attar.core.errors import AttarError
from tests.known import gaussians, generator, images

CONVOLUTIONAL = [name for name in FIXED if name.startswith("c")]
of_depths = pytest.mark.parametrize("depth", [1, 2, 3])


def pictures(n: int = 3, seed: int = 0, channels: int = 2) -> Tensor:
    return torch.randn(n, channels, 4, 3, dtype=torch.float64, generator=generator(seed))


def network(parameters: list[Tensor], image: Tensor) -> Tensor:
    """3x3 convolutions with zero padding and ReLUs, and a linear output, in the parameterisation of the kernels."""
    *layers, last = zip(parameters[::2], parameters[1::2], strict=True)
    x = image[None]
    for weight, bias in layers:
        x = conv2d(x, weight * sqrt(WEIGHT / weight[0].numel()), bias * sqrt(BIAS), padding=1).relu()
    return (x.flatten() @ last[0]) * sqrt(WEIGHT / x.numel()) + last[1] * sqrt(BIAS)


def drawn(depth: int, width: int, gen: torch.Generator) -> list[Tensor]:
    shapes = [(width, 2 if layer == 0 else width, 3, 3) for layer in range(depth)]
    convolutions = [torch.randn(s, generator=gen) for shape in shapes for s in (shape, shape[:1])]
    return [*convolutions, torch.randn(width * 12, generator=gen), torch.randn((), generator=gen)]


@pytest.mark.parametrize(("depth", "width"), [(1, 1024), (2, 192), (3, 128)])
def test_the_ntk_is_the_mean_jacobian_inner_product_of_wide_networks(depth: int, width: int) -> None:
    x = pictures().float()
    found = []
    for seed in range(24):
        slopes = vmap(grad(network), in_dims=(None, 0))(drawn(depth, width, generator(seed)), x)
        jacobian = torch.cat([part.reshape(len(x), -1) for part in slopes], 1)
        found.append((jacobian @ jacobian.T).double())
    require_within_errors(torch.stack(found), convolutional(depth, True, x, x))


@pytest.mark.parametrize(("depth", "width"), [(1, 256), (2, 128), (3, 128)])
def test_the_nngp_is_the_mean_product_of_outputs_of_wide_networks(depth: int, width: int) -> None:
    x, found = pictures().float(), []
    for seed in range(450):
        said = vmap(network, in_dims=(None, 0))(drawn(depth, width, generator(seed)), x).double()
        found.append(torch.outer(said, said))
    require_within_errors(torch.stack(found), convolutional(depth, False, x, x))


def require_within_errors(found: Tensor, limit: Tensor) -> None:
    """Every entry is within four standard errors, and together they tell the limit from one that is 30 % off."""
    error = found.std(0) / sqrt(len(found))
    assert bool(((found.mean(0) - limit).abs() < 4 * error).all())
    assert float((limit.diagonal() / error.diagonal()).max()) > 4 / 0.3


@of_depths
@pytest.mark.parametrize("tangent", [False, True])
def test_on_images_of_one_pixel_it_is_fully_connected_with_a_ninth_of_the_weights(depth: int, tangent: bool) -> None:
    x = torch.randn(5, 4, 1, 1, dtype=torch.float64, generator=generator())
    found = convolutional(depth, tangent, x, x)
    sigma = x.flatten(1) @ x.flatten(1).T / 4
    theta, variance = torch.zeros_like(sigma), sigma.diagonal()
    for layer in range(depth + 1):
        share = WEIGHT / (9 if layer < depth else 1)  # the weights of the other eight pixels see zeros
        sigma, variance = share * sigma + BIAS, share * variance + BIAS
        theta = share * theta + sigma
        if layer < depth:
            scale = torch.outer(variance, variance).sqrt()
            angle = (sigma / scale).clamp(-1, 1).acos()
            theta = theta * (torch.pi - angle) / (2 * torch.pi)
            sigma = scale * (angle.sin() + (torch.pi - angle) * angle.cos()) / (2 * torch.pi)
            variance = variance / 2
    assert torch.allclose(found, theta if tangent else sigma, rtol=1e-6)


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_they_are_symmetric_and_positive_definite_in_float64(name: str) -> None:
    x = images(4).x
    gram = FIXED[name](x, x)
    assert gram.dtype == torch.float64
    assert torch.allclose(gram, gram.T)
    assert float(torch.linalg.eigvalsh(gram)[0]) > 0
    assert not torch.allclose(gram, fully_connected(int(name[-1]), "ntk" in name, x, x))


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_derivatives_are_right_in_both_arguments(name: str) -> None:
    a, b = pictures(2, 1, 1).requires_grad_(), pictures(2, 2, 1).requires_grad_()
    assert gradcheck(FIXED[name], (a, b))


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_derivatives_are_right_where_an_image_meets_itself_and_finite_where_it_meets_its_negative(name: str) -> None:
    x, direction = pictures().requires_grad_(), torch.randn(3, 3, generator=generator(4)).double()
    (slope,) = torch.autograd.grad((direction * FIXED[name](x, x)).sum(), x)
    step = torch.zeros_like(x)
    step[1, 0, 2, 1] = 1e-5
    ends = [(direction * FIXED[name](x + s, x + s)).sum() for s in (step, -step)]
    assert slope[1, 0, 2, 1].item() == pytest.approx(((ends[0] - ends[1]) / 2e-5).item(), rel=1e-4, abs=1e-6)
    large = (1e9 * pictures()).requires_grad_()  # so that the bias is rounded away and cosines are minus one
    (slope,) = torch.autograd.grad(FIXED[name](large, -large.detach()).sum(), large)
    assert bool(torch.isfinite(slope).all())


@of_depths
def test_chunks_change_neither_values_nor_derivatives(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    direction = torch.randn(7, 5, generator=generator(3)).double()

    def found() -> list[Tensor]:
        a, b = pictures(7, 1).requires_grad_(), pictures(5, 2).requires_grad_()
        gram = convolutional(depth, True, a, b)
        return [gram.detach(), *torch.autograd.grad((direction * gram).sum(), (a, b))]

    whole = found()
    for chunk, columns in ((12 * 6, 3), (1, 1), (12 * 4, 100)):
        monkeypatch.setattr(wide, "CHUNK", chunk)
        monkeypatch.setattr(wide, "COLUMNS", columns)
        assert all(torch.allclose(one, other, atol=1e-12) for one, other in zip(whole, found(), strict=True))


def test_the_graph_keeps_the_images_alone() -> None:
    a, b = pictures(7), pictures(5).requires_grad_()
    saved: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        convolutional(3, True, a, b)
    assert sum(tensor.numel() for tensor in saved) == a.numel() + b.numel()


@pytest.mark.parametrize("method", ["kip", "label-solve"])
def test_methods_learn_with_them_and_refuse_what_is_no_image(method: str) -> None:
    options = {"kernels": "cntk1-ntk1-cnngp2"}
    learnt = attar.reduce(images(8), method, per_class=1, options=options, descent={"steps": 3}, network="linear")
    assert bool(torch.isfinite(learnt.data.x).all())
    with pytest.raises(AttarError, match=r"needs images, not examples of shape \(6,\): choose another, such as ntk2"):
        attar.reduce(gaussians(8), method, per_class=1, options={"kernels": "cntk2"}, network="linear")
    with pytest.raises(AttarError, match="needs images"):
        KernelRidge.fit(gaussians(8), FIXED["cnngp1"])
