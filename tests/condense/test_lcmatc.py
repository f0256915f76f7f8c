import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy

import attar
from attar.condense.contract import Task
from attar.condense.dc import DCState
from attar.condense.dsa import DSA
from attar.condense.lcmatc import LCMatC, variance
from attar.condense.matching import distance
from attar.core.errors import AttarError
from attar.data import Data, augment
from attar.nets import network
from attar.nets.objective import Objective
from tests.known import gaussian_task, gaussians, generator, images
from tests.known import slope as mean_slope


def image_task(per_class: int = 6) -> Task:
    data = images(per_class)
    return Task(data, network("convnet-d1w4", data.shape, data.classes), data.classes)


@pytest.mark.parametrize("name", ["linear", "mlp-d2w8", "convnet-d1w4"])
def test_the_variance_is_that_of_gradients_built_one_by_one(name: str) -> None:
    data = images(4).map(Tensor.double)
    net = network(name, data.shape, 3)
    theta = net.init(generator()).double()

    def loss(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(net(theta, x[None]), y[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0))(theta, data.x, data.y)
    expected = each[:, net.head_index()].var(0)
    assert torch.allclose(variance(net, theta, data), expected, rtol=0, atol=1e-8)


def test_without_rho_it_is_gradient_matching() -> None:
    task = image_task()
    syn = task.data.sample_per_class(2, generator(3)).map(lambda x: x.clone().requires_grad_())
    state = DCState(task.network.init(generator()), 0)
    ours = LCMatC(rho=0.0, batch=4, strategy="none").loss(syn, state, task, generator())
    theirs = DSA(batch=4, strategy="none").loss(syn, state, task, generator())
    slopes = [torch.autograd.grad(loss.value, syn.x)[0] for loss in (ours, theirs)]
    assert torch.equal(ours.value, theirs.value)
    assert torch.equal(*slopes)


def test_both_sides_are_augmented_by_the_same_sequence_of_all_three() -> None:
    task = image_task()
    syn, theta = task.data.sample_per_class(2, generator(3)), task.network.init(generator())
    method, gen = LCMatC(rho=0.0, batch=4), generator(5)
    found = method.loss(syn, DCState(theta, 0), task, generator(5)).value.item()
    expected = 0.0
    for c in range(3):
        omega = augment.draw("color-crop-cutout", gen, "all")
        real, fake = (part.map(omega) for part in (task.data.sample_class(c, 4, gen), syn.of_class(c)))
        a, b = (mean_slope(task.network, theta, part) for part in (real, fake))
        expected += distance(task.network, a, b).item()
    assert found == pytest.approx(expected, rel=1e-4)


def test_rho_weighs_half_the_difference_of_variances() -> None:
    task = gaussian_task(8, network="mlp-d1w8")
    syn, state = task.data[:6].map(lambda x: 2 * x), DCState(task.network.init(generator()), 0)
    losses = [LCMatC(batch=8, rho=rho).loss(syn, state, task, generator()) for rho in (0.0, 1.0, 2.0)]
    gap = sum(
        (variance(task.network, state.theta, a) - variance(task.network, state.theta, b)).abs().sum().item()
        for a, b in ((task.data.of_class(c), syn.of_class(c)) for c in range(3))
    )
    plain, one, two = (loss.value.item() for loss in losses)
    assert one - plain == pytest.approx(gap / 2, rel=1e-4)
    assert two - plain == pytest.approx(gap, rel=1e-4)


def test_loss_is_zero_and_stationary_when_synthetic_equals_real() -> None:
    task = image_task()
    syn = task.data.map(lambda x: x.clone().requires_grad_())
    state = DCState(task.network.init(generator()), 0)
    loss = LCMatC(batch=6, rho=1.0).loss(syn, state, task, generator())
    far = LCMatC(batch=6, rho=1.0).loss(task.data.map(lambda x: x.flip(0)), state, task, generator())
    assert loss.value.item() < 1e-2 < 1 < far.value.item()
    assert loss.metrics["curvature"].item() < 1e-4 < far.metrics["curvature"].item()
    (slope,) = torch.autograd.grad(loss.value, syn.x)
    assert slope.abs().max().item() < 0.1


def test_one_example_of_a_class_has_no_variance_to_match() -> None:
    task = gaussian_task(8)
    state = DCState(task.network.init(generator()), 0)
    loss = LCMatC(batch=8, rho=1.0).loss(task.data[:3], state, task, generator())
    assert loss.metrics["curvature"].item() == 0
    assert bool(torch.isfinite(loss.value))


def test_the_network_is_trained_on_the_real_data_for_an_epoch() -> None:
    task, gen = gaussian_task(8), generator(7)
    state = DCState(task.network.init(generator()), 1)
    after = LCMatC(batch=8).loss(task.data[:3], state, task, gen).state.theta
    copy, theta = generator(7), state.theta
    for _ in range(3):  # 24 examples in batches of 8
        slope = Objective(task.network).gradient(theta, task.data.sample(8, copy))
        theta = torch.add(theta, slope, alpha=-0.01)
    assert torch.equal(after, theta)
    elsewhere: Data = task.data[3:6]
    assert torch.equal(after, LCMatC(batch=8).loss(elsewhere, state, task, generator(7)).state.theta)


def test_the_network_is_trained_under_all_three_augmentations() -> None:
    task, gen = image_task(), generator(7)
    theta = task.network.init(generator())
    method = LCMatC(batch=4, net_steps=1)
    after = method.loss(task.data[:3], DCState(theta, 1), task, gen).state.theta
    again = generator(7)
    seen = task.data.sample(4, again).map(lambda x: augment.jitter("color-crop-cutout", x, again, "all"))
    assert torch.allclose(after, theta - method.net_lr * mean_slope(task.network, theta, seen), atol=1e-6)


def test_a_mosaic_holds_factor_squared_examples() -> None:
    data = images(8)
    coreset = attar.reduce(
        data,
        "lcmat-c",
        per_class=2,
        network="convnet-d1w4",
        options={"factor": 2, "batch": 4, "net_steps": 1},
        descent={"steps": 2},
    )
    assert torch.bincount(coreset.data.y).tolist() == [8, 8, 8]
    assert coreset.data.shape == data.shape
    with pytest.raises(AttarError, match="has 8 examples, but 12 per class"):
        attar.reduce(data, "lcmat-c", per_class=3, network="convnet-d1w4", options={"factor": 2})
    with pytest.raises(AttarError, match="set factor to 1"):
        attar.reduce(gaussians(8), "lcmat-c", per_class=1, options={"factor": 2})
