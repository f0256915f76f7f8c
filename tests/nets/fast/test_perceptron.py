from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from attar.core.errors import AttarError
from attar.data import Data
from attar.nets import Network, fast, network, objective
from attar.nets.fast.perceptron import perceptron
from attar.nets.objective import Objective
from tests.known import gaussians, generator, images

LOSSES = [*product(["cross-entropy", "focal-2", "multi-margin", "squared"], ["mean"]), ("cross-entropy", "sum")]


def layers() -> nn.Module:
    """The first without a bias, and one activation twice."""
    relu = nn.ReLU()
    return nn.Sequential(nn.Linear(6, 5, bias=False), relu, nn.Sequential(nn.Linear(5, 4), relu), nn.Linear(4, 3))


def vectors(net: Network, count: int = 3) -> Tensor:
    gen = generator(7)
    return torch.stack([net.init(gen) for _ in range(count)]).double()


def labelled(kind: str, n: int = 4) -> Data:
    """Examples in float64."""
    data = gaussians(n).map(Tensor.double)
    weights = torch.linspace(0, 2, len(data)).double()
    soft = 0.7 * one_hot(data.y, 3).double() + torch.linspace(0, 1, len(data))[:, None].double()  # of any sum
    return {
        "hard": data,
        "weighted": replace(data, weights=weights),
        "soft": replace(data, y=soft),
        "both": replace(data, y=soft, weights=weights),
    }[kind]


@pytest.fixture
def no_vmap(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Any:
        raise AssertionError("vmap was called")

    monkeypatch.setattr(objective, "vmap", refuse)


@pytest.mark.usefixtures("no_vmap")
@pytest.mark.parametrize("kind", ["hard", "weighted", "soft", "both"])
@pytest.mark.parametrize(("loss", "reduction"), [*LOSSES, ("squared", "sum")])
def test_losses_and_gradients_are_those_of_autograd(kind: str, loss: str, reduction: objective.Reduction) -> None:
    data = labelled(kind)
    net = network(layers, data.shape, 3)
    theta, batches = vectors(net), [data[:4], data[4:8], data[8:]]
    found = Objective(net, loss, reduction)
    for at, batch in ((theta, data), (theta, batches), (theta[0], batches)):
        with fast.plain():
            values, gradients = found.value_and_gradient(at, batch)
        assert torch.allclose(found.value_and_gradient(at, batch)[0], values, atol=1e-12)
        assert torch.allclose(found.value_and_gradient(at, batch)[1], gradients, atol=1e-12)
        assert torch.equal(found.gradient(at, batch), found.value_and_gradient(at, batch)[1])
        with torch.no_grad():
            assert torch.allclose(found.value(at, batch), values, atol=1e-12)


@pytest.mark.usefixtures("no_vmap")
@pytest.mark.parametrize("name", ["linear", "mlp-d1w8", "mlp-d3w8", "mlp-d2w8-sigmoid", "mlp-d2w8-leakyrelu"])
def test_every_perceptron_by_name_on_images(name: str) -> None:
    data = images(4).map(Tensor.double)
    net = network(name, data.shape, 3)
    theta = vectors(net)
    with fast.plain():
        wanted = Objective(net).gradient(theta, data)
    found = Objective(net).gradient(theta, data)
    assert torch.allclose(found, wanted, atol=1e-12)
    assert torch.equal(found, Objective(net).gradient(theta.mT.contiguous().mT, data))  # strides do not matter
    assert torch.equal(found, Objective(net).gradient(torch.cat([theta[:1], theta])[1:], data))  # nor where rows begin


@pytest.mark.usefixtures("no_vmap")
def test_nothing_given_is_changed_and_nothing_returned_has_a_graph() -> None:
    data = labelled("both")
    learnt = replace(data, x=data.x.clone().requires_grad_(), y=data.y.clone().requires_grad_())
    net = network("mlp-d1w5", data.shape, 3)
    theta = vectors(net).requires_grad_()
    before = theta.detach().clone()
    values, gradients = Objective(net).value_and_gradient(theta, learnt)
    assert not values.requires_grad
    assert not gradients.requires_grad
    assert torch.equal(theta, before)
    assert torch.equal(learnt.x, data.x)
    assert torch.equal(learnt.y, data.y)


@pytest.mark.parametrize("transposed", [False, True])
def test_what_is_kept_of_a_batch_is_never_out_of_date(transposed: bool) -> None:
    data = labelled("both")
    data = replace(data, x=data.x.mT.contiguous().mT if transposed else data.x.clone())
    net = network("mlp-d1w5", data.shape, 3)
    theta, kept = vectors(net), Objective(net)
    before = kept.gradient(theta, data)
    copy = before.clone()
    assert data.weights is not None
    for changed in (data.x, data.y, data.weights):
        changed.mul_(2)
        assert torch.equal(kept.gradient(theta, data), Objective(net).gradient(theta, data))
        assert not torch.equal(kept.gradient(theta, data), before)
    assert torch.equal(kept.gradient(theta[:2], data), Objective(net).gradient(theta[:2], data))
    other = kept.gradient(theta.float(), data.map(Tensor.float))
    assert torch.allclose(other.double(), kept.gradient(theta, data), atol=1e-5)
    with fast.plain():
        wanted = Objective(net).gradient(theta, data)
        assert torch.equal(kept.gradient(theta, data), wanted)
    assert torch.equal(before, copy)  # what was returned is not written over


def test_wrong_shapes_are_refused_in_words() -> None:
    data = labelled("hard")
    net = network("mlp-d1w5", data.shape, 3)
    for at, batch in ((vectors(net)[:, 1:], data), (vectors(net), data.map(lambda x: x[:, 1:]))):
        with pytest.raises(AttarError, match=r"parameters, got theta|built for examples of shape"):
            Objective(net).gradient(at, batch)


def tied() -> nn.Module:
    module = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6), nn.Linear(6, 3))
    module[2].weight = module[0].weight
    return module


def frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))
    module[0].requires_grad_(False)
    return module


def hooked() -> nn.Module:
    module = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))
    module[1].register_forward_hook(lambda _module, _inputs, output: 2 * output)
    return module


def own_forward() -> nn.Module:
    module = nn.Sequential(nn.Linear(6, 3))
    vars(module[0])["forward"] = lambda x: x[:, :3]
    return module


class Residual(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :3] + super().forward(x)


OTHERS: dict[str, Callable[[], nn.Module]] = {
    "tied": tied,
    "frozen": frozen,
    "hook": hooked,
    "own forward": own_forward,
    "subclass": lambda: Residual(nn.Linear(6, 3)),
    "activation of inputs": lambda: nn.Sequential(nn.Sigmoid(), nn.Linear(6, 3)),
    "two activations": lambda: nn.Sequential(nn.Linear(6, 3), nn.Sigmoid(), nn.ReLU()),
    "falling activation": lambda: nn.Sequential(nn.Linear(6, 4), nn.LeakyReLU(-0.5), nn.Linear(4, 3)),
    "norm": lambda: nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.Linear(4, 3)),
    "weight norm": lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 3))),
    "nothing": nn.Sequential,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_modules_are_no_perceptrons(name: str) -> None:
    assert perceptron(OTHERS[name](), (6,)) is None


def test_a_linear_layer_on_rows_of_an_image_is_no_perceptron() -> None:
    rows = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    assert perceptron(rows, (2, 6)) is None
    assert perceptron(nn.Sequential(nn.Flatten(0), nn.Linear(6, 3)), (6,)) is None
    assert perceptron(nn.Sequential(nn.Flatten(), nn.Linear(12, 3)), (2, 6)) is not None
