import pytest
import torch
from torch import Tensor
from torch.func import grad, hessian, vmap
from torch.nn.functional import cross_entropy

from attar.select.metrics import CityDistance, GradientDistance, WeighedGradientDistance
from attar.select.outer import Outer
from attar.select.view import View
from tests.known import generator
from tests.select.seen import exact

of_biases = pytest.mark.parametrize("bias", [True, False])


def loss(head: Tensor, view: View, i: int) -> Tensor:
    """The loss of one example as a function of the last layer alone, by the whole network."""
    theta = view.theta.index_put((view.network.head_index(),), head)
    return cross_entropy(view.network(theta, view.data.x[i : i + 1]), view.data.y[i : i + 1])


def slow(view: View) -> tuple[Tensor, Tensor]:
    """Gradients and Hessian diagonals with respect to the last layer, one example after the other."""
    head = view.theta[view.network.head_index()]
    gradients = [grad(loss)(head, view, i).flatten() for i in range(len(view))]
    hessians = [hessian(loss)(head, view, i).reshape(head.numel(), -1).diagonal() for i in range(len(view))]
    return torch.stack(gradients), torch.stack(hessians)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # what torch.func.hessian itself uses
@of_biases
def test_gradients_and_curvatures_are_those_of_autograd(bias: bool) -> None:
    view = exact(bias=bias)
    gradients, diagonals = slow(view)
    assert view.bias is bias
    width = torch.arange(gradients.shape[1])
    assert torch.allclose(view.gradients.columns(width), gradients, atol=1e-12)
    assert torch.allclose(view.curvatures.columns(width), diagonals, atol=1e-12)
    assert torch.allclose(view.gradients.gram(view.gradients), gradients @ gradients.T, atol=1e-8, rtol=1e-8)
    assert torch.allclose(view.gradients.norms, gradients.norm(dim=1), atol=1e-8, rtol=1e-8)


def test_gradients_are_those_of_vmap() -> None:
    view = exact()

    def one(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(view.network(theta, x[None]), y[None])

    every = vmap(grad(one), in_dims=(None, 0, 0))(view.theta, view.data.x, view.data.y)
    last = every[:, view.network.head_index()].flatten(1)
    assert torch.allclose(view.gradients.gram(view.gradients), last @ last.T, atol=1e-8, rtol=1e-8)


@of_biases
def test_sums_products_and_variances_are_those_of_the_built_vectors(bias: bool) -> None:
    gen = generator(1)
    outer = Outer(torch.randn(9, 3, generator=gen).double(), torch.randn(9, 4, generator=gen).double(), bias)
    width = 3 * (4 + bias)
    built = outer.columns(torch.arange(width))
    weights, matrix = torch.rand(9, generator=gen).double(), torch.randn(3, 4 + bias, generator=gen).double()
    assert torch.allclose(outer.sum(weights).flatten(), weights @ built)
    assert torch.allclose(outer.mean().flatten(), built.mean(0))
    assert torch.allclose(outer.dot(matrix), built @ matrix.flatten())
    assert torch.allclose(outer.variances().flatten(), built.var(0, correction=0))
    assert torch.allclose(outer.squares, built.square().sum(1))
    assert torch.allclose(torch.cat([outer.slab(c) for c in range(3)], 1), built)


@of_biases
def test_distances_are_those_of_the_built_vectors(bias: bool) -> None:
    gen = generator(2)
    outer = Outer(torch.randn(9, 3, generator=gen).double(), torch.randn(9, 4, generator=gen).double(), bias)
    built = outer.columns(torch.arange(3 * (4 + bias)))
    scale = torch.rand(3, 4 + bias, generator=gen).double() + 0.5
    scaled, some = built * scale.flatten(), torch.tensor([4, 8, 0])
    for since in (0, 5):
        plain = GradientDistance(outer).rows(some, since)
        weighed = WeighedGradientDistance(outer, scale).rows(some, since)
        assert torch.allclose(plain, torch.cdist(built[some], built[since:]), atol=1e-7)
        assert torch.allclose(weighed, torch.cdist(scaled[some], scaled[since:]), atol=1e-7)
        city = CityDistance(built).rows(some, since)
        assert torch.allclose(city, (built[some][:, None] - built[since:]).abs().sum(2))
    assert torch.allclose(GradientDistance(outer).sizes, built.norm(dim=1))
    assert torch.allclose(WeighedGradientDistance(outer, scale).sizes, scaled.norm(dim=1))


def test_no_example_is_apart_from_itself() -> None:
    outer = Outer(torch.randn(40, 3, generator=generator()), 1000 + torch.randn(40, 4, generator=generator(1)))
    rows = GradientDistance(outer).rows(torch.arange(40))
    assert rows.diagonal().tolist() == [0] * 40
