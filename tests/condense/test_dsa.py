from typing import Any

import pytest
import torch

import attar
from attar.condense.contract import Task
from attar.condense.dc import DC
from attar.condense.dsa import DSA
from attar.core import registry
from attar.core.errors import AttarError
from attar.data import Data, augment
from attar.nets import network
from tests.known import gaussian_task, gaussians, generator, images


def image_task() -> Task:
    data = images(6)
    return Task(data, network("convnet-d1w4", data.shape, data.classes), data.classes)


@pytest.mark.parametrize("seed", range(6))  # each draws another augmentation
def test_loss_is_zero_and_stationary_when_synthetic_equals_real_whatever_the_augmentation(seed: int) -> None:
    task = image_task()
    syn = task.data.map(lambda x: x.clone().requires_grad_())
    loss = DSA(batch=6).loss(syn, DSA().init(task, generator()), task, generator(seed))
    (slope,) = torch.autograd.grad(loss.value, syn.x)
    other = task.data.map(lambda x: x.flip(0))
    far = DSA(batch=6).loss(other, DSA().init(task, generator()), task, generator(seed)).value
    assert loss.value.item() < 1e-3 < 1 < far.item()
    assert slope.abs().max().item() < 1e-3


def test_without_augmentation_it_is_dc() -> None:
    task = image_task()
    syn = task.data.sample_per_class(2, generator(3))
    values = []
    for method in (DC(4, 3, 2), DSA(4, 3, 2, strategy="none")):
        gen = generator()
        state = method.init(task, gen)
        for _ in range(3):
            loss = method.loss(syn, state, task, gen)
            state = loss.state
            values.append((loss.value, state.theta))
    for (a, theta), (b, vartheta) in zip(values[:3], values[3:], strict=True):
        assert torch.equal(a, b)
        assert torch.equal(theta, vartheta)


def test_the_network_is_trained_on_augmented_examples() -> None:
    task = image_task()
    syn = task.data.sample_per_class(2, generator(3))

    def trained(method: DC, seed: int) -> torch.Tensor:
        state = method.init(task, generator())._replace(matched=1)
        theta: torch.Tensor = method.loss(syn, state, task, generator(seed)).state.theta
        return theta

    plain = [trained(DC(4, 3, 2), seed) for seed in (1, 2)]
    augmented = [trained(DSA(4, 3, 2, strategy="flip-scale-rotate"), seed) for seed in (1, 2)]
    assert torch.equal(*plain)
    assert not torch.equal(*augmented)
    assert not torch.equal(augmented[0], plain[0])


def test_strategies_are_checked_and_feature_vectors_are_not_augmented_by_themselves() -> None:
    with pytest.raises(AttarError, match="Unknown augmentation 'flop'"):
        registry.build("dsa", {"strategy": "flop"})
    task = gaussian_task(4)
    syn: Data = task.data
    assert DSA(batch=4).loss(syn, DSA().init(task, generator()), task, generator()).value.item() < 1e-3
    with pytest.raises(AttarError, match="use strategy 'none'"):
        DSA(strategy="flip").loss(syn, DSA().init(task, generator()), task, generator())


def test_networks_learn_from_its_coresets_under_its_augmentation() -> None:
    quick: dict[str, Any] = {"per_class": 1, "network": "mlp-d1w4", "descent": {"steps": 1}}
    assert attar.reduce(images(4), "dsa", **quick).training.augment == augment.DSA
    assert attar.reduce(images(4), "dsa", options={"strategy": "flip"}, **quick).training.augment == "flip"
    assert attar.reduce(gaussians(4), "dsa", **quick).training.augment == "none"
    assert attar.reduce(images(4), "lcmat-c", options={"net_steps": 1}, **quick).training.augment == "none"
    assert attar.reduce(images(4), "cafe", **quick).training.augment == "none"
    assert attar.reduce(images(4), "cafe", options={"strategy": augment.DSA}, **quick).training.augment == augment.DSA
