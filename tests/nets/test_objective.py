from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from attar.data import Data
from attar.data.batches import Minibatches
from attar.nets import Network, fast, network
from attar.nets.fast import engine
from attar.nets.losses import losses
from attar.nets.objective import Objective, Reduction, value_and_slope
from tests.known import gaussians, generator, images, slope

IMAGES = images(12)
WEIGHTED = replace(IMAGES, weights=torch.rand(36, generator=generator(1)))


def vectors(net: Network, count: int = 3) -> Tensor:
    gen = generator(7)
    return torch.stack([net.init(gen) for _ in range(count)])


def three(data: Data, alike: bool = True) -> list[Data]:
    return [data[:10], data[10:20], data[20:30] if alike else data[20:]]


def test_the_loss_is_a_mean_weighted_over_the_whole_set() -> None:
    net = network("linear", (2,), 4)
    theta, each = torch.zeros(net.size), torch.tensor(4.0).log().item()
    batch = Data(torch.ones(2, 2), torch.tensor([0, 3]))
    assert Objective(net).value(theta, batch).item() == pytest.approx(each)
    # A batch that holds only heavy examples pulls harder: so gradients are right on average.
    heavy = replace(batch, weights=torch.full((2,), 3.0))
    assert Objective(net).value(theta, heavy).item() == pytest.approx(3 * each)


@pytest.mark.parametrize("name", ["cross-entropy", "focal-2", "multi-margin", "squared"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("kind", ["hard", "soft", "weighted"])
def test_it_is_the_loss_by_name_with_its_gradient(name: str, reduction: Reduction, kind: str) -> None:
    data = gaussians(4)
    soft = replace(data, y=0.7 * one_hot(data.y, 3) + 0.1)
    data = {"hard": data, "soft": soft, "weighted": replace(data, weights=torch.linspace(0, 2, 12))}[kind]
    net = network("mlp-d1w5", data.shape, 3)
    theta = net.init(generator())

    def wanted(at: Tensor) -> Tensor:
        each = losses(name)(net(at, data.x), data.y) * (1 if data.weights is None else data.weights)
        return each.mean() if reduction == "mean" else each.sum()

    objective = Objective(net, name, reduction)
    assert torch.allclose(objective.value(theta, data), wanted(theta))
    assert torch.allclose(objective.gradient(theta, data), torch.func.grad(wanted)(theta), atol=1e-5)
    assert torch.allclose(objective.gradient(theta, data, graph=True), torch.func.grad(wanted)(theta), atol=1e-5)


@pytest.mark.parametrize("limit", [0, 10**12])
@pytest.mark.parametrize("name", ["convnet-d2w4", "mlp-d1w8", "convnet-d2w4-batch"])
@pytest.mark.parametrize("graph", [False, True])
def test_vectors_and_batches_in_any_number_give_what_each_gives_alone(
    monkeypatch: pytest.MonkeyPatch, limit: int, name: str, graph: bool
) -> None:
    monkeypatch.setattr(engine, "TOGETHER", limit)
    monkeypatch.setattr(engine, "SHARED", limit)
    net = network(name, IMAGES.shape, 3)
    theta, objective = vectors(net), Objective(net)
    one, batches = theta[0], three(IMAGES)

    def alone(rows: Sequence[Tensor], parts: Sequence[Data]) -> tuple[Tensor, Tensor]:
        pairs = list(zip(rows, parts, strict=True))
        values = [cross_entropy(net(row, part.x), part.y) for row, part in pairs]
        return torch.stack(values), torch.stack([slope(net, row, part) for row, part in pairs])

    for at, batch, wanted in (
        (theta, IMAGES, alone(theta.unbind(), [IMAGES] * 3)),
        (theta, batches, alone(theta.unbind(), batches)),
        (one, batches, alone([one] * 3, batches)),
        (theta[:1], batches[:1], alone([one], batches[:1])),
        (theta, three(IMAGES, alike=False), alone(theta.unbind(), three(IMAGES, alike=False))),
    ):
        found = (*objective.value_and_gradient(at, batch, graph=graph), objective.value(at, batch))
        for a, b in zip(found, (*wanted, wanted[0]), strict=True):
            assert a.shape == b.shape
            assert torch.allclose(a, b, atol=1e-5)
        assert graph or not found[1].requires_grad
    value, gradient = objective.value_and_gradient(one, IMAGES, graph=graph)
    assert (value.shape, gradient.shape) == ((), (net.size,))


@pytest.mark.parametrize("limit", [0, 10**12])
@pytest.mark.parametrize(("batch", "augment"), [(99, "none"), (10, "none"), (10, "flip-crop")])
def test_vectors_see_the_same_minibatches_whatever_the_way(
    monkeypatch: pytest.MonkeyPatch, limit: int, batch: int, augment: str
) -> None:
    monkeypatch.setattr(engine, "TOGETHER", limit)
    net = network("convnet-d2w4", IMAGES.shape, 3)
    theta, gen, other = vectors(net), generator(3), generator(3)
    batches = Minibatches(WEIGHTED, batch, augment)
    found = Objective(net).gradient(theta, batches.draw(3, gen))
    with fast.plain():
        assert torch.allclose(found, Objective(net).gradient(theta, batches.draw(3, other)), atol=1e-5)
    assert torch.equal(gen.get_state(), other.get_state())


@pytest.mark.parametrize("together", [False, True])
def test_with_a_graph_it_is_differentiable_in_theta_examples_labels_and_weights(
    monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    monkeypatch.setattr(engine, "TOGETHER", 10**12 if together else 0)
    net = network("mlp-d1w3-sigmoid", (4,), 3)
    gen = generator(2)
    theta = vectors(net, 2).double().requires_grad_()
    x = torch.randn(5, 4, generator=gen, dtype=torch.float64, requires_grad=True)
    y = torch.rand(5, 3, generator=gen, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(5, generator=gen, dtype=torch.float64, requires_grad=True)

    def gradient(theta: Tensor, x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
        return Objective(net).gradient(theta, Data(x, y, weights), graph=True)

    assert torch.autograd.gradcheck(gradient, (theta, x, y, weights))
    assert torch.autograd.gradcheck(lambda *parts: gradient(parts[0][0], *parts[1:]), (theta, x, y, weights))


def test_values_are_differentiable_in_theta_and_examples() -> None:
    net = network("mlp-d1w3-sigmoid", (4,), 3)
    theta = vectors(net, 2).double().requires_grad_()
    x = torch.randn(5, 4, generator=generator(2), dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0, 1, 2, 0, 1])
    assert torch.autograd.gradcheck(lambda theta, x: Objective(net).value(theta, Data(x, y)), (theta, x))


def test_the_same_path_gives_the_same_bits() -> None:
    net = network("convnet-d2w8", IMAGES.shape, 3)
    a, b = (Objective(net).gradient(vectors(net), three(IMAGES)) for _ in range(2))
    assert torch.equal(a, b)


class Counting(nn.Module):
    """A linear classifier that notes how many examples it sees at once."""

    def __init__(self, seen: list[int]) -> None:
        super().__init__()
        self.layer, self.seen = nn.Linear(6, 3), seen

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(len(x))
        logits: Tensor = self.layer(x)
        return logits


@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_goes_through_in_parts_so_that_memory_does_not_grow_with_it(
    monkeypatch: pytest.MonkeyPatch, weighted: bool
) -> None:
    seen: list[int] = []
    data = gaussians(40)
    data = replace(data, weights=torch.linspace(0, 2, len(data))) if weighted else data
    net = network(lambda: Counting(seen), data.shape, 3)
    objective, theta = Objective(net), vectors(net, 1)[0]
    wanted = *objective.value_and_gradient(theta, data), objective.value(theta, data)
    monkeypatch.setattr(engine, "AT_ONCE", 3 * 16)  # three activations an example
    monkeypatch.setattr(engine, "FORWARD", 3 * 16)
    monkeypatch.setattr(engine, "PER_PARAMETER", 0)
    seen.clear()
    found = objective.value_and_gradient(theta, data)
    with torch.no_grad():
        total = objective.value(theta, data)
    assert max(seen) <= 16
    for a, b in zip((*found, total), wanted, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_a_network_of_many_parameters_has_larger_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    data = gaussians(40)
    net = network(lambda: Counting(seen), data.shape, 3)
    theta = vectors(net, 1)[0]
    monkeypatch.setattr(engine, "AT_ONCE", 1)
    assert net.activations == 3
    assert net.separate
    for each, parts in ((0, 120), (1, 18), (16, 2), (20, 1)):  # 3 x 120 activations, 21 parameters
        monkeypatch.setattr(engine, "PER_PARAMETER", each)
        seen.clear()
        Objective(net).gradient(theta, data)
        assert len(seen) == parts


def test_batch_norm_sees_its_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "AT_ONCE", 1)
    monkeypatch.setattr(engine, "PER_PARAMETER", 0)
    net = network("convnet-d1w4-batch", IMAGES.shape, 3)
    theta = vectors(net, 1)[0]
    assert torch.allclose(Objective(net).gradient(theta, IMAGES), slope(net, theta, IMAGES), atol=1e-6)


def test_gradients_are_found_where_none_are_recorded() -> None:
    net = network("convnet-d1w4", IMAGES.shape, 3)
    objective, theta = Objective(net), vectors(net, 1)
    with torch.no_grad():
        inside = objective.gradient(theta, IMAGES)
    assert torch.equal(inside, objective.gradient(theta, IMAGES))


def test_data_theta_and_module_stay_as_they_are() -> None:
    made: list[nn.Module] = []

    def build() -> nn.Module:
        made.append(nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(inplace=True), nn.Linear(8, 3)))
        return made[-1]

    net = network(build, IMAGES.shape, 3)
    x, theta = IMAGES.x.clone(), vectors(net)
    before, kept = theta.clone(), [[p.clone() for p in module.parameters()] for module in made]
    objective = Objective(net)
    first = objective.gradient(theta[0], IMAGES)
    copy = first.clone()
    objective.gradient(theta, IMAGES)
    objective.gradient(theta[1], IMAGES)
    assert torch.equal(IMAGES.x, x)
    assert torch.equal(theta, before)
    assert torch.equal(first, copy)  # what was returned is not written over
    for module, values in zip(made, kept, strict=True):
        assert all(torch.equal(p, value) for p, value in zip(module.parameters(), values, strict=True))


def test_parameters_that_a_forward_pass_does_not_use_have_gradient_zero() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.other = nn.Linear(6, 3), nn.Parameter(torch.ones(4))

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = self.layer(x)
            return logits

    data = gaussians(4)
    net = network(Unused, data.shape, 3)
    theta = net.init(generator())
    found = net.unflatten(Objective(net).gradient(theta, data))
    assert found["other"].eq(0).all()
    assert torch.allclose(torch.cat([part.flatten() for part in found.values()]), slope(net, theta, data), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precisions_may_alternate_and_frozen_values_follow(dtype: torch.dtype) -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
            self.second.weight = self.first.weight  # tied
            self.scale = nn.Parameter(torch.full((6,), 2.0), requires_grad=False)
            self.register_buffer("shift", torch.arange(6.0))
            self.head = nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = self.head(self.second(torch.tanh(self.first(x))) * self.scale + self.shift)
            return logits

    data = gaussians(4)
    net = network(Frozen, data.shape, 3)
    theta = net.init(generator())
    Objective(net).gradient(theta, data)
    exact = slope(net, theta.double(), data.map(Tensor.double))
    found = Objective(net).gradient(theta.to(dtype), data.map(lambda x: x.to(dtype)))
    assert found.dtype == dtype
    assert torch.allclose(found.double(), exact, atol=1e-6)


def test_any_loss_has_a_gradient_for_every_row_and_a_second_one_with_a_graph() -> None:
    theta = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    value, slope = value_and_slope(lambda at: at.pow(3).sum(1), theta)
    assert (value.tolist(), slope.tolist()) == ([9.0, 91.0], [[3.0, 12.0], [27.0, 48.0]])
    assert not value.requires_grad
    assert not slope.requires_grad
    _, slope = value_and_slope(lambda at: at.pow(3).sum(1), theta, graph=True)
    assert torch.autograd.grad(slope.sum(), theta)[0].tolist() == [[6.0, 12.0], [18.0, 24.0]]
