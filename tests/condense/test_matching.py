import pytest
import torch
from torch.autograd import grad

from attar.condense import matching
from attar.condense.contract import Task
from attar.condense.matching import distance, distances, gradient, gradients, pairs, plain
from attar.core.errors import AttarError
from attar.data import Data
from attar.nets import network
from tests.known import gaussian_task, gaussians, generator, images

of_networks = pytest.mark.parametrize("name", ["linear", "mlp-d2w8", "convnet-d2w8", "convnet-d2w4-batch"])


def parts(per_class: int = 5) -> tuple[list[Data], Data]:
    data = images(per_class)
    return [data.of_class(c) for c in range(data.classes)], data


@of_networks
@pytest.mark.parametrize("limit", [0, 10**9])
def test_gradients_of_classes_are_those_of_a_loop_over_them(
    name: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "TOGETHER", limit)
    classes, data = parts()
    net = network(name, data.shape, data.classes)
    theta = net.init(generator())
    loop = torch.stack([gradient(net, theta, part) for part in classes])
    assert torch.allclose(gradients(net, theta, classes), loop, atol=1e-5)
    assert not gradients(net, theta, classes).requires_grad


@of_networks
@pytest.mark.parametrize("limit", [0, 10**9])
def test_the_matching_loss_and_its_slope_are_those_of_a_loop(
    name: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "TOGETHER", limit)
    classes, data = parts()
    net = network(name, data.shape, data.classes)
    theta, x = net.init(generator()), (data.x + 0.3).requires_grad_()
    fakes = [Data(x, data.y).of_class(c) for c in range(data.classes)]
    real, fake = gradients(net, theta, classes), gradients(net, theta, fakes, graph=True)
    ours = distances(net, real, fake).sum()
    loop = torch.stack(
        [
            distance(net, gradient(net, theta, a), gradient(net, theta, b, graph=True))
            for a, b in zip(classes, fakes, strict=True)
        ]
    ).sum()
    assert ours.item() == pytest.approx(loop.item(), rel=1e-5)
    assert torch.allclose(grad(ours, x, retain_graph=True)[0], grad(loop, x)[0], atol=1e-4)


def test_classes_of_different_sizes_go_one_by_one() -> None:
    data = images(4)[:11]
    classes = [data.of_class(c) for c in range(3)]
    net = network("convnet-d1w4", data.shape, 3)
    theta = net.init(generator())
    loop = torch.stack([gradient(net, theta, part) for part in classes])
    assert {len(part) for part in classes} == {3, 4}
    assert torch.allclose(gradients(net, theta, classes), loop, atol=1e-6)


def test_soft_labels_count_by_their_shares() -> None:
    task = gaussian_task(4, network="mlp-d1w8")
    theta, x = task.network.init(generator()), task.data.x
    soft = Data(x, torch.full((len(x), 3), 1 / 3))
    hard = torch.stack([gradient(task.network, theta, Data(x, torch.full((len(x),), c))) for c in range(3)])
    assert torch.allclose(plain(task.network, theta, soft), hard.mean(0), atol=1e-6)


def test_a_batch_larger_than_the_class_takes_the_whole_class() -> None:
    task = gaussian_task(4)
    found = pairs(task.data, task, 100, "none", generator())
    assert [len(real) for real, _ in found] == [4, 4, 4]
    assert all(torch.equal(a.x.sort(0).values, b.x.sort(0).values) for a, b in found)


def test_both_sides_of_a_class_are_augmented_alike_and_classes_differently() -> None:
    data = images(1)
    task = Task(data, network("linear", data.shape, 3), 3)
    found = pairs(data, task, 1, "scale-rotate", generator())
    assert all(torch.equal(real.x, fake.x) for real, fake in found)
    moved = [not torch.equal(fake.x, data.of_class(c).x) for c, (_, fake) in enumerate(found)]
    assert all(moved)


@pytest.mark.parametrize("kind", ["real", "synthetic"])
def test_a_class_that_is_missing_is_named(kind: str) -> None:
    data = gaussians(4)
    few = data[data.y != 1]
    task = Task(few if kind == "real" else data, network("linear", data.shape, 3), 3)
    with pytest.raises(AttarError, match=f"Class 1 has no {kind} example"):
        pairs(data if kind == "real" else few, task, 4, "none", generator())
