import pytest
import torch

from attar.condense.contract import Descent, NoState, Task
from attar.condense.dm import DM
from attar.condense.driver import Condensation
from attar.condense.source import Pixels
from attar.core.errors import AttarError
from attar.data import Data
from attar.nets import network, passes
from tests.known import gaussian_task, generator, images

NOTHING = NoState()


def learnt(data: Data) -> Data:
    return data.map(lambda x: x.clone().requires_grad_())


def image_task() -> Task:
    data = images(8)
    return Task(data, network("convnet-d1w4", data.shape, data.classes), data.classes)


@pytest.mark.parametrize("name", ["linear", "mlp-d2w16"])
def test_loss_is_zero_and_stationary_when_synthetic_equals_real(name: str) -> None:
    task = gaussian_task(8, network=name)
    syn = learnt(task.data)
    loss = DM(batch=8, strategy="none").loss(syn, NOTHING, task, generator())
    (grad,) = torch.autograd.grad(loss.value, syn.x)
    assert loss.value.item() < 1e-10
    assert grad.abs().max().item() < 1e-5


@pytest.mark.parametrize("seed", range(6))  # each draws another augmentation
def test_real_and_synthetic_images_are_augmented_by_the_same_draw(seed: int) -> None:
    task = image_task()
    loss = DM(batch=8).loss(learnt(task.data), NOTHING, task, generator(seed))
    assert loss.value.item() < 1e-8


def test_loss_is_the_squared_distance_of_class_means_where_features_are_the_inputs() -> None:
    task = gaussian_task(8, network="linear")
    syn = task.data[:6].map(lambda x: x + 1)
    loss = DM(batch=8, strategy="none").loss(syn, NOTHING, task, generator())
    gaps = [task.data.of_class(c).x.mean(0) - syn.of_class(c).x.mean(0) for c in range(3)]
    assert loss.value.item() == pytest.approx(sum(gap.square().sum().item() for gap in gaps), rel=1e-5)
    assert loss.metrics["gap"].item() == pytest.approx(loss.value.item() / 3)


def test_one_example_per_class_moves_to_the_class_mean_under_a_linear_network() -> None:
    # With linear features the objective is least squares in x, so the optimum can be written down.
    task, gen = gaussian_task(per_class=64, network="linear"), generator(1)
    source = Pixels(task.data.sample_per_class(1, gen))
    method = DM(batch=64, strategy="none")
    for _ in Condensation(method, task, source, Descent(steps=100, lr=0.2, momentum=0), gen):
        pass
    means = torch.stack([task.data.of_class(c).x.mean(0) for c in range(task.classes)])
    assert torch.allclose(source.x, means, atol=1e-4)


def test_two_examples_per_class_move_together_and_keep_their_difference() -> None:
    # Only their mean is in the objective.
    task, gen = gaussian_task(per_class=32, network="linear"), generator(1)
    source = Pixels(task.data.sample_per_class(2, gen))
    before = source.x.detach().clone().unflatten(0, (3, 2))
    for _ in Condensation(DM(batch=32, strategy="none"), task, source, Descent(steps=100, lr=0.2), gen):
        pass
    pairs = source.x.unflatten(0, (3, 2))
    means = torch.stack([task.data.of_class(c).x.mean(0) for c in range(task.classes)])
    assert torch.allclose(pairs.mean(1), means, atol=1e-4)
    assert torch.allclose(pairs[:, 0] - pairs[:, 1], before[:, 0] - before[:, 1], atol=1e-4)


def test_every_step_draws_a_new_network() -> None:
    task, gen = gaussian_task(8, network="mlp-d1w8"), generator()
    syn, method = task.data[:3], DM(batch=8, strategy="none")
    first, second = (method.loss(syn, NOTHING, task, gen).value.item() for _ in range(2))
    assert first != second


def test_no_more_real_examples_than_the_batch_are_looked_at() -> None:
    task = gaussian_task(64, network="linear")
    values = [
        DM(batch=1, strategy="none").loss(task.data[:3], NOTHING, task, generator(s)).value.item() for s in range(9)
    ]
    assert len(set(values)) == 9  # single examples, so other draws give other values
    whole = DM(batch=64, strategy="none")
    a, b = (whole.loss(task.data[:3], NOTHING, task, generator(s)).value.item() for s in (0, 1))
    assert a == pytest.approx(b, rel=1e-5)  # the whole class, so the draw does not matter


def test_loss_and_gradient_do_not_depend_on_the_parts_of_the_real_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = image_task()

    def found() -> tuple[torch.Tensor, torch.Tensor]:
        syn = learnt(task.data[:6])
        value = DM(batch=8).loss(syn, NOTHING, task, generator()).value
        return value.detach(), torch.autograd.grad(value, syn.x)[0]

    whole = found()
    monkeypatch.setattr(passes, "FORWARD", 3 * task.network.activations)
    for a, b in zip(found(), whole, strict=True):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-7)


def test_augmenting_feature_vectors_is_refused_with_the_remedy() -> None:
    task = gaussian_task(8)
    with pytest.raises(AttarError, match="use strategy 'none'"):
        DM(strategy="flip").loss(task.data, NOTHING, task, generator())
    assert DM(batch=8).loss(task.data, NOTHING, task, generator()).value.item() < 1e-10  # by itself it augments none
