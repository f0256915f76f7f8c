from itertools import pairwise
from math import sqrt

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import grad, vmap

from attar.condense.kernels import FIXED, KernelRidge, closeness, draw, factorise, make, parse, rbf
from attar.condense.label_solve import solve
from attar.condense.wide import BIAS, WEIGHT, fully_connected
from attar.core.errors import AttarError
from attar.data import Data
from attar.nets import network
from tests.known import gaussians, generator, images

of_kernels = pytest.mark.parametrize("name", [name for name in FIXED if not name.startswith("c")])


def examples(n: int = 4, size: int = 5, seed: int = 0) -> Tensor:
    return torch.randn(n, size, dtype=torch.float64, generator=generator(seed))


def wide(weights: list[Tensor], biases: list[Tensor], x: Tensor) -> Tensor:
    """A fully connected ReLU network with one output, in the parameterisation whose limit the kernels are."""
    for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = (x.relu() if number else x) @ weight * sqrt(WEIGHT / len(weight)) + bias * sqrt(BIAS)
    return x.squeeze(-1)


def drawn(widths: list[int], gen: torch.Generator) -> tuple[list[Tensor], list[Tensor]]:
    shapes = list(pairwise(widths))
    return [torch.randn(s, generator=gen) for s in shapes], [torch.randn(s[1], generator=gen) for s in shapes]


@pytest.mark.parametrize(
    ("depth", "width"), [(1, 8192), (2, 1024), (3, 1024), pytest.param(2, 8192, marks=pytest.mark.slow)]
)
def test_the_ntk_is_the_jacobian_inner_product_of_a_wide_network(depth: int, width: int) -> None:
    x = examples(3).float()
    found = []
    for seed in range(4):  # the kernel of a network is a random number around the limit, by about one over root width
        weights, biases = drawn([5, *[width] * depth, 1], generator(seed))
        slopes = vmap(grad(wide, argnums=(0, 1)), in_dims=(None, None, 0))(weights, biases, x)
        jacobian = torch.cat([part.flatten(1) for parts in slopes for part in parts], 1)
        found.append(jacobian @ jacobian.T)
    limit = fully_connected(depth, True, x, x).float()
    mean, error = torch.stack(found).mean(0), torch.stack(found).std(0) / 2
    assert bool(((mean - limit).abs() < 4 * error + 0.02 * limit.abs()).all())
    assert torch.allclose(mean, limit, rtol=0.1)


@pytest.mark.parametrize("depth", [1, 2])
def test_the_nngp_is_the_covariance_of_what_random_networks_say(depth: int) -> None:
    x = examples(3).float()
    said = torch.stack([wide(*drawn([5, *[256] * depth, 1], generator(seed)), x) for seed in range(2000)])
    limit = fully_connected(depth, False, x, x).float()
    found = said.T @ said / len(said)
    assert bool(((found - limit).abs() < 0.15 * limit.diagonal().max()).all())


def test_a_hand_worked_case_of_orthogonal_examples() -> None:
    # Two unit vectors at right angles without bias would have κ₁(0) = 1/2π and κ₀(0) = 1/4.
    x = torch.eye(2, dtype=torch.float64)
    first = WEIGHT / 2 + BIAS  # Σ₀(x, x)
    cosine = torch.tensor(BIAS / first, dtype=torch.float64)
    kappa = ((1 - cosine**2).sqrt() + (torch.pi - cosine.acos()) * cosine) / (2 * torch.pi)
    nngp = fully_connected(1, False, x, x)
    assert nngp[0, 1].item() == pytest.approx(WEIGHT * first * kappa.item() + BIAS)
    assert nngp[0, 0].item() == pytest.approx(WEIGHT * first / 2 + BIAS)
    assert rbf(x, x)[0, 1].item() == pytest.approx(torch.tensor(-1.0).exp().item())


@of_kernels
def test_kernels_are_symmetric_and_positive_definite_in_float64(name: str) -> None:
    x = gaussians(4).x
    gram = make(name, network("linear", (6,), 3), generator())(x, x)
    assert gram.dtype == torch.float64
    assert torch.allclose(gram, gram.T)
    assert float(torch.linalg.eigvalsh(gram)[0]) > 0


@of_kernels
def test_kernels_have_the_right_derivative_also_where_an_example_meets_itself(name: str) -> None:
    x, other, direction = examples().requires_grad_(), examples(3, seed=1), examples(4, 4, seed=2)
    assert gradcheck(lambda a: FIXED[name](a, other), x)
    (slope,) = torch.autograd.grad((direction * FIXED[name](x, x)).sum(), x)
    for row in range(2):
        step = torch.zeros_like(x)
        step[row, 1] = 1e-5
        ends = [(direction * FIXED[name](x + s, x + s)).sum() for s in (step, -step)]
        assert slope[row, 1].item() == pytest.approx(((ends[0] - ends[1]) / 2e-5).item(), rel=1e-4, abs=1e-6)


def test_random_features_are_those_of_one_network() -> None:
    data = images(2)
    net = network("convnet-d1w4", data.shape, 3)
    kernel = draw("features", net, generator())
    gram = kernel(data.x, data.x)
    assert torch.equal(gram, kernel(data.x, data.x))
    assert float(torch.linalg.eigvalsh(gram)[0]) > -1e-9
    assert not torch.equal(gram, draw("features", net, generator(1))(data.x, data.x))


def test_every_named_kernel_is_drawn_and_unknown_ones_are_refused() -> None:
    net, gen = network("linear", (6,), 3), generator()
    assert {id(draw("ntk1-rbf", net, gen)) for _ in range(20)} == {id(FIXED["ntk1"]), id(FIXED["rbf"])}
    with pytest.raises(AttarError, match="Unknown kernel 'ntk4': did you mean 'ntk"):
        parse("ntk1-ntk4")


def test_jitter_grows_until_a_singular_kernel_can_be_factorised() -> None:
    twice = rbf(examples().repeat(2, 1), examples().repeat(2, 1))
    assert factorise(rbf(examples(), examples()), 0.0).jitter == 0
    lower, jitter = factorise(twice - 1e-10 * torch.eye(8), 0.0)
    assert 1e-10 < jitter <= 1e-6
    assert torch.allclose(lower @ lower.T, twice, atol=1e-5)


@pytest.mark.parametrize("gram", [-torch.eye(3).double(), torch.full((3, 3), torch.nan).double()])
def test_a_kernel_that_no_jitter_helps_is_an_error_that_names_lambda(gram: Tensor) -> None:
    with pytest.raises(AttarError, match=r"singular at λ = 0\.01.*raise λ \(ridge\)"):
        factorise(gram, 0.01)


def test_a_linear_kernel_gives_ridge_regression_and_weights_count_as_repetitions() -> None:
    data, ridge = gaussians(8), 0.1
    fitted = KernelRidge.fit(data, lambda a, b: a.double() @ b.double().T, ridge)
    x, y = data.x.double(), torch.eye(3).double()[data.y] - 1 / 3
    penalty = ridge * x.square().sum(1).mean() * torch.eye(6).double()
    weight = torch.linalg.solve(x.T @ x + penalty, x.T @ y)
    assert torch.allclose(fitted(data.x), x @ weight)
    assert torch.equal(fitted.predict(data.x).argmax(1), fitted(data.x).argmax(1))
    assert torch.allclose(fitted.predict(data.x).sum(1), torch.ones(24).double())
    again = Data(data.x, data.y, torch.full((24,), 3.0), data.spec)
    assert torch.allclose(KernelRidge.fit(again, rbf, ridge)(data.x), KernelRidge.fit(data, rbf, ridge)(data.x))
    first = torch.tensor([1e6, *[1e-3] * 23])  # one example counts and the others hardly do
    alone = KernelRidge.fit(Data(data.x, data.y, first, data.spec), rbf, 1e-3)
    assert torch.allclose(alone(data.x[:1]), y[:1], atol=0.05)


def test_more_examples_than_fit_in_memory_are_refused_before() -> None:
    many = Data(torch.zeros(20_000, 1), torch.zeros(20_000, dtype=torch.long))
    with pytest.raises(AttarError, match="more than 2 GB"):
        KernelRidge.fit(many, rbf)
    with pytest.raises(AttarError, match="more than 2 GB"):
        solve(many.x, many, [rbf], 1e-6)


def test_closeness_of_a_regression_to_itself_is_none_and_strong_bounds_weak_from_above() -> None:
    data = gaussians(8)
    f, g = KernelRidge.fit(data, rbf), KernelRidge.fit(data[:6], rbf)
    ours, theirs = f.targets(data.x), g.targets(data.x)
    assert closeness(ours, ours, data) == (0, 0)
    weak, strong = closeness(ours, theirs, data)
    y = torch.eye(3).double()[data.y] - 1 / 3
    ells = [(h(data.x) - y).square().sum(1).mean().item() / 2 for h in (f, g)]
    assert weak == pytest.approx(abs(ells[0] - ells[1]))
    assert strong == pytest.approx((f(data.x) - g(data.x)).square().sum(1).mean().item() / 2)
    assert sqrt(strong) >= abs(sqrt(ells[0]) - sqrt(ells[1]))  # the triangle's inequality
