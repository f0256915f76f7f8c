from collections.abc import Callable

import pytest
import torch
from torch import Generator, Tensor, nn
from torch.func import grad, vmap
from torch.nn import functional as F

from attar.core.errors import AttarError
from attar.nets import Network, network


def generator(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def user(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), *layers, nn.Linear(8, 3))


class Tied(nn.Module):
    """One weight in two layers, a buffer, a frozen parameter, and a head without bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.frozen = nn.Parameter(torch.full((4,), 2.0), requires_grad=False)
        self.register_buffer("shift", torch.arange(4.0))
        self.head = nn.Linear(4, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.second(torch.tanh(self.first(x))) * self.frozen + self.shift)
        return out


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)
        self.calls: Tensor
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        out: Tensor = self.head(x)
        return out


def test_unflatten_gives_views_that_tile_theta_in_order() -> None:
    net = network("mlp-d1w5", (3,), 2)
    theta = torch.arange(float(net.size))
    parts = net.unflatten(theta)
    assert torch.equal(torch.cat([part.flatten() for part in parts.values()]), theta)
    assert [tuple(part.shape) for part in parts.values()] == [(5, 3), (5,), (2, 5), (2,)]
    assert {part.untyped_storage().data_ptr() for part in parts.values()} == {theta.untyped_storage().data_ptr()}


def test_a_perceptron_worked_by_hand() -> None:
    net = network("mlp-d1w1", (2,), 2)
    theta = torch.tensor([1.0, -1.0, 0.5, 2.0, 3.0, 0.0, 1.0])  # hidden: x0 - x1 + 0.5; logits: 2h and 3h + 1
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # hidden units 1.5 and -0.5, the second cut to zero
    assert torch.equal(net(theta, x), torch.tensor([[3.0, 5.5], [0.0, 1.0]]))
    assert torch.equal(net.features(theta, x), torch.tensor([[1.5], [0.0]]))


def test_init_depends_on_the_generator_alone_and_leaves_the_global_one_alone() -> None:
    before = torch.get_rng_state()
    net = network("convnet-d2w4", (1, 8, 8), 3)
    first = net.init(generator())
    net.features(first, torch.zeros(2, 1, 8, 8))
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(devices=[]):
        torch.rand(7)  # elsewhere somebody draws
        assert torch.equal(net.init(generator()), first)
    gen = generator()
    again, other = net.init(gen), net.init(gen)
    assert torch.equal(again, first)
    assert not torch.equal(other, first)
    assert not torch.equal(net.init(generator(1)), first)


def test_init_follows_the_default_rules_of_pytorch() -> None:
    net = network("convnet-d2w64", (3, 8, 8), 10)
    parts = net.unflatten(net.init(generator()))
    for name, fan_in in (("body.0", 3 * 9), ("body.4", 64 * 9), ("head", 64 * 2 * 2)):
        bound, weight = fan_in**-0.5, parts[f"{name}.weight"]
        assert 0.97 * bound < weight.abs().max() <= bound
        assert weight.var().item() == pytest.approx(bound**2 / 3, rel=0.1)  # the variance of a uniform draw
        assert parts[f"{name}.bias"].abs().max() <= bound
    assert parts["body.1.weight"].eq(1).all()
    assert parts["body.1.bias"].eq(0).all()


@pytest.mark.parametrize("spec", ["mlp", "convnet-d2w4", "convnet-d2w4-batch-sigmoid-max", "convnet-d2w4-group"])
def test_double_backward_agrees_with_finite_differences(spec: str) -> None:
    net = network(spec.replace("mlp", "mlp-d1w4"), (1, 4, 4), 3)
    theta = net.init(generator()).double().requires_grad_()
    x = torch.randn(3, 1, 4, 4, generator=generator(1), dtype=torch.float64, requires_grad=True)
    assert net(theta, x).dtype == torch.float64
    torch.autograd.gradgradcheck(lambda t, z: net(t, z).logsumexp(1).sum(), (theta, x), fast_mode=True)


def test_per_example_gradients_sum_to_the_gradient_of_the_sum() -> None:
    net = network("convnet-d2w4", (1, 8, 8), 3)
    theta, x = net.init(generator()).double(), torch.randn(5, 1, 8, 8, dtype=torch.float64, generator=generator(1))
    y = torch.tensor([0, 1, 2, 1, 0])

    def loss(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(net(theta, x), y, reduction="sum")

    each = vmap(grad(lambda t, a, b: loss(t, a[None], b[None])), (None, 0, 0))(theta, x, y)
    assert torch.allclose(each.sum(0), grad(loss)(theta, x, y))


def test_theta_may_lie_across_the_columns_of_a_matrix() -> None:
    net = network("convnet-d1w4", (1, 4, 4), 3)
    thetas = torch.stack([net.init(generator(seed)) for seed in range(3)])
    x = torch.randn(2, 1, 4, 4, generator=generator())
    columns = vmap(net, (1, None))(thetas.T.contiguous(), x)
    assert torch.allclose(columns, vmap(net, (0, None))(thetas, x), atol=1e-6)


def test_a_wrong_shape_is_named_also_under_vmap() -> None:
    net = network("convnet-d1w4", (1, 8, 8), 3)
    theta = net.init(generator())
    with pytest.raises(AttarError, match=r"shape \(1, 8, 8\), got a batch of shape \(2, 3, 8, 8\)"):
        net(theta, torch.zeros(2, 3, 8, 8))
    with pytest.raises(AttarError, match="built for examples"):
        net(theta, torch.zeros(1, 8, 8))
    with pytest.raises(AttarError, match="built for examples"):
        vmap(net, (0, None))(theta[None], torch.zeros(2, 3, 8, 8))
    with pytest.raises(AttarError, match=rf"has {net.size} parameters"):
        net(theta[None], torch.zeros(2, 1, 8, 8))


def test_a_users_module_is_called_as_it_is_and_never_changed() -> None:
    made: list[nn.Module] = []

    def factory() -> nn.Module:
        made.append(user(nn.GroupNorm(2, 8), nn.ReLU(), nn.Dropout(0.0)))
        return made[-1]

    net = network(factory, (4,), 3)
    kept = [{key: value.clone() for key, value in module.state_dict().items()} for module in made]
    theta, x = net.init(generator()), torch.randn(5, 4, generator=generator())
    nn.utils.vector_to_parameters(theta, made[-1].parameters())
    assert torch.equal(net(theta, x), made[-1](x))
    net.features(theta, x)
    for module, values in zip(made[:-1], kept, strict=True):
        assert module.training
        assert all(torch.equal(value, values[key]) for key, value in module.state_dict().items())


def test_tied_frozen_and_buffered_values_are_no_second_part_of_theta() -> None:
    net = network(Tied, (4,), 3)
    assert net.size == 16 + 12
    theta, x = net.init(generator()).double(), torch.randn(5, 4, generator=generator(), dtype=torch.float64)
    weight, bias = net.head(theta)
    square = theta[:16].view(4, 4)
    features = torch.tanh(x @ square.T) @ square.T * 2 + torch.arange(4)
    assert torch.allclose(net.features(theta, x), features)
    assert torch.allclose(net(theta, x), features @ weight.T)
    assert bias.eq(0).all()


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (lambda: user(nn.BatchNorm1d(8)), "track_running_stats=False"),
        (Counting, "changes its buffer 'calls'"),
        (lambda: user(nn.Dropout(0.5)), "Dropout"),
        (lambda: nn.Linear(5, 3), r"cannot take examples of shape \(4,\)"),
        (lambda: nn.Linear(4, 2), r"logits of shape \(n, 3\)"),
        (lambda: nn.LazyLinear(3), "known size"),
        (nn.Flatten, "parameters"),
        (lambda: "net", "gave str"),
        (nn.Linear(4, 3), "cannot be made from Linear"),
    ],
)
def test_modules_that_cannot_serve_are_refused(factory: Callable[[], nn.Module], words: str) -> None:
    with pytest.raises(AttarError, match=words):
        network(factory, (4,), 3)


def test_a_factory_that_gives_one_module_again_is_refused() -> None:
    module = user()
    with pytest.raises(AttarError, match="same module twice"):
        network(lambda: module, (4,), 3)


@pytest.mark.parametrize(
    "factory",
    [
        lambda: user(nn.BatchNorm1d(8), nn.Dropout(0.5)).eval(),
        lambda: user(nn.BatchNorm1d(8, track_running_stats=False)),
    ],
)
def test_batch_norm_without_changing_statistics_works_under_vmap(factory: Callable[[], nn.Module]) -> None:
    net = network(factory, (4,), 3)
    thetas = torch.stack([net.init(generator(seed)) for seed in range(2)])
    x = torch.randn(6, 4, generator=generator())
    loop = torch.stack([net(theta, x) for theta in thetas])
    assert torch.allclose(vmap(net, (0, None))(thetas, x), loop, atol=1e-5)


def test_features_need_a_linear_layer_at_the_end() -> None:
    net = network(lambda: nn.Sequential(user(), nn.LogSoftmax(1)), (4,), 3)
    theta = net.init(generator())
    assert torch.allclose(net(theta, torch.ones(2, 4)).exp().sum(1), torch.ones(2))
    with pytest.raises(AttarError, match=r"must be a plain nn\.Linear"):
        net.features(theta, torch.ones(2, 4))
    with pytest.raises(AttarError, match=r"must be a plain nn\.Linear"):
        net.head(theta)


def test_repr_says_what_it_is() -> None:
    net = Network("mine", (2,), 3, lambda: nn.Linear(2, 3))
    assert repr(net) == "Network('mine', shape=(2,), classes=3, size=9)"
