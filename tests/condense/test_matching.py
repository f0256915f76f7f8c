from dataclasses import replace

import pytest
import torch
from torch.autograd import grad

from attar.condense.contract import Task
from attar.condense.matching import distance, distances, pairs
from attar.core.errors import AttarError
from attar.data import Data
from attar.nets import network
from attar.nets.objective import Objective
from tests.known import gaussian_task, gaussians, generator, images, slope

of_networks = pytest.mark.parametrize("name", ["linear", "mlp-d2w8", "convnet-d2w8", "convnet-d2w4-batch"])


def parts(per_class: int = 5) -> tuple[list[Data], Data]:
    data = images(per_class)
    return [data.of_class(c) for c in range(data.classes)], data


@of_networks
def test_the_matching_loss_and_its_slope_are_those_of_a_loop(name: str) -> None:
    classes, data = parts()
    net = network(name, data.shape, data.classes)
    theta, x = net.init(generator()), (data.x + 0.3).requires_grad_()
    fakes, objective = [Data(x, data.y).of_class(c) for c in range(data.classes)], Objective(net)
    real, fake = objective.gradient(theta, classes), objective.gradient(theta, fakes, graph=True)
    ours = distances(net, real, fake).sum()
    loop = torch.stack(
        [
            distance(net, slope(net, theta, a), objective.gradient(theta, b, graph=True))
            for a, b in zip(classes, fakes, strict=True)
        ]
    ).sum()
    assert ours.item() == pytest.approx(loop.item(), rel=1e-5)
    assert torch.allclose(grad(ours, x, retain_graph=True)[0], grad(loop, x)[0], atol=1e-4)


def test_weights_of_the_data_do_not_count() -> None:
    task = gaussian_task(4)
    weighted = Task(replace(task.data, weights=torch.rand(12, generator=generator(1))), task.network, 3)
    found = pairs(task.data, weighted, 100, "none", generator())
    assert all(real.weights is None for real, _ in found)


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
