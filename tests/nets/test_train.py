from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from attar.core.errors import AttarError
from attar.data import Data, Mapped
from attar.nets import Network, network
from attar.nets.learner import SGD, Adam, Learner
from attar.nets.objective import Objective
from attar.nets.train import Trainer, Training, fit, rate, train
from tests.known import gaussians, generator, images

DATA = gaussians(4)
NET = network("mlp-d1w5", DATA.shape, 3)
PLAIN = Training(steps=1, batch=99, lr=0.5, momentum=0, weight_decay=0, schedule="constant")


def starts(net: Network, draws: int, seed: int = 0) -> Tensor:
    gen = generator(seed)
    return torch.stack([net.init(gen) for _ in range(draws)])


def alone(theta: Tensor, net: Network, data: Data, training: Training) -> Tensor:
    """Textbook training of one network on all examples at once."""
    theta = theta.clone().requires_grad_()
    if training.optimiser == "adam":
        optimiser: torch.optim.Optimizer = torch.optim.Adam([theta], training.lr, weight_decay=training.weight_decay)
    else:
        optimiser = torch.optim.SGD([theta], training.lr, training.momentum, weight_decay=training.weight_decay)
    for step in range(training.steps):
        optimiser.param_groups[0]["lr"] = rate(training.lr, training.schedule, step, training.steps)
        optimiser.zero_grad()
        cross_entropy(net(theta, data.x), data.y).backward()
        optimiser.step()
    return theta.detach()


@pytest.mark.parametrize("name", ["linear", "mlp-d2w8"])
@pytest.mark.parametrize(
    "options",
    [{"momentum": 0.9, "lr": 0.1}, {"optimiser": "adam", "lr": 0.01}, {"schedule": "cosine", "weight_decay": 0.1}],
)
def test_an_ensemble_is_each_network_trained_alone(name: str, options: dict[str, Any]) -> None:
    net, training = network(name, DATA.shape, 3), replace(PLAIN, steps=25, **options)
    together = train(net, DATA, training, generator(), draws=3)
    for theta, start in zip(together, starts(net, 3), strict=True):
        assert torch.allclose(theta, alone(start, net, DATA, training), atol=1e-4)


def test_convolutions_train_together_as_they_do_alone() -> None:
    data = images(3)
    net, training = network("convnet-d1w4", data.shape, 3), replace(PLAIN, steps=5, lr=0.05)
    together = train(net, data, training, generator(), draws=2)
    for theta, start in zip(together, starts(net, 2), strict=True):
        assert torch.allclose(theta, alone(start, net, data, training), atol=1e-4)


def test_a_weight_of_two_counts_as_the_example_twice() -> None:
    weights = torch.ones(12)
    weights[[0, 5]] = torch.tensor([2.0, 3.0])
    repeated = DATA[torch.tensor([*range(12), 0, 5, 5])]
    training = replace(PLAIN, steps=20)
    weighted = train(NET, replace(DATA, weights=weights), training, generator())
    assert torch.allclose(weighted, train(NET, repeated, training, generator()), atol=1e-5)
    assert not torch.allclose(weighted, train(NET, DATA, training, generator()), atol=1e-3)


def test_only_the_ratios_of_weights_count() -> None:
    weights, training = torch.rand(12, generator=generator(1)), replace(PLAIN, steps=10)
    a, b = (train(NET, replace(DATA, weights=w), training, generator()) for w in (weights, 1000 * weights))
    assert torch.allclose(a, b, atol=1e-5)


def test_an_example_of_weight_zero_does_not_count() -> None:
    weights = torch.ones(12)
    weights[11] = 0
    wild = DATA.map(lambda x: torch.cat([x[:11], 50 * x[11:]]))
    training = replace(PLAIN, steps=10)
    a, b = (train(NET, replace(data, weights=weights), training, generator()) for data in (DATA, wild))
    assert torch.allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("n", [1, 5])
def test_a_set_smaller_than_the_batch_is_a_mean_over_what_there_is(n: int) -> None:
    few, start = DATA[:n], starts(NET, 1)[0]
    theta = train(NET, few, replace(PLAIN, batch=64), generator())[0]
    slope = torch.func.grad(lambda t: cross_entropy(NET(t, few.x), few.y))(start)
    assert torch.allclose(theta, start - 0.5 * slope, atol=1e-6)


def test_a_step_looks_at_a_batch_of_different_examples() -> None:
    few, start = DATA[:4], starts(NET, 1)[0]
    theta = train(NET, few, replace(PLAIN, batch=2), generator())[0]
    slopes = [
        torch.func.grad(lambda t, pair=pair: cross_entropy(NET(t, few.x[pair]), few.y[pair]))(start)
        for pair in map(list, combinations(range(4), 2))
    ]
    assert sum(torch.allclose(theta, start - 0.5 * slope, atol=1e-6) for slope in slopes) == 1


def test_every_example_has_its_turn() -> None:
    hidden = DATA.map(lambda x: x.clone())
    hidden.x[:, 3] = 0
    hidden.x[7, 3] = 1  # a feature that only one example shows
    start = starts(NET, 1)[0]
    theta = train(NET, hidden, replace(PLAIN, batch=1, steps=100, lr=0.01), generator())[0]
    first = NET.unflatten(theta)["body.1.weight"] - NET.unflatten(start)["body.1.weight"]
    assert first[:, 3].abs().max().item() > 0


def test_networks_of_an_ensemble_see_batches_of_their_own() -> None:
    def seen(start: Tensor, theta: Tensor) -> int:
        """The one example whose gradient explains the step."""
        each = [torch.func.grad(lambda t, x=x, y=y: cross_entropy(NET(t, x), y))(start) for x, y in singles]
        return min(range(12), key=lambda i: float((theta - start + 0.5 * each[i]).norm()))

    singles = [(DATA.x[i : i + 1], DATA.y[i : i + 1]) for i in range(12)]
    moved = train(NET, DATA, replace(PLAIN, batch=1), generator(), draws=6)
    assert len({seen(start, theta) for start, theta in zip(starts(NET, 6), moved, strict=True)}) > 2


def test_soft_labels_that_are_certain_are_hard_labels() -> None:
    soft = replace(DATA, y=one_hot(DATA.y, 3).float())
    training = replace(PLAIN, steps=10, batch=5)
    a, b = (train(NET, data, training, generator(), draws=2) for data in (DATA, soft))
    assert torch.allclose(a, b, atol=1e-5)


def test_soft_labels_are_probabilities() -> None:
    # Softmax regression on one point recovers its label distribution.
    target = torch.tensor([[0.5, 0.3, 0.2]])
    data = Data(torch.ones(1, 1), target)
    net = network("linear", (1,), 3)
    theta = train(net, data, replace(PLAIN, steps=300, lr=1.0), generator())[0]
    assert torch.allclose(net(theta, data.x).softmax(1), target, atol=1e-3)


def test_augmentation_is_used_and_is_part_of_the_seed() -> None:
    data = images(3)
    net = network("mlp-d1w4", data.shape, 3)
    plain, one, two = (
        train(net, data, replace(PLAIN, augment=augment, steps=3), generator()) for augment in ("none", "flip", "flip")
    )
    assert torch.equal(one, two)
    assert not torch.equal(plain, one)


def test_training_that_diverges_says_so() -> None:
    far = DATA.map(lambda x: 1e6 * x)
    with pytest.raises(AttarError, match=r"Training diverged at .*step.*: try a smaller learning rate than 1e\+30"):
        train(NET, far, replace(PLAIN, steps=50, lr=1e30), generator())


def test_a_last_step_that_diverges_is_no_result() -> None:
    far = DATA.map(lambda x: 1e6 * x)
    with pytest.raises(AttarError, match="diverged"):
        train(NET, far, replace(PLAIN, steps=1, lr=1e38), generator())


def test_the_data_and_the_result_are_plain_tensors() -> None:
    theta = train(NET, DATA, PLAIN, generator(), draws=2)
    assert theta.shape == (2, NET.size)
    assert not theta.requires_grad


@pytest.mark.parametrize(("step", "share"), [(0, 1.0), (25, 0.853553), (50, 0.5), (75, 0.146447), (100, 0.0)])
def test_the_cosine_goes_down_from_the_start_to_zero(step: int, share: float) -> None:
    assert rate(0.2, "cosine", step, 100) == pytest.approx(0.2 * share, abs=1e-6)
    assert rate(0.2, "constant", step, 100) == 0.2


def test_large_convolutions_follow_the_plain_loop() -> None:
    # 64 channels and 96 images: fast convolutions are used, and the two parameter vectors go one by one.
    data = images(32)
    net, training = network("convnet-d2w64", data.shape, 3), replace(PLAIN, steps=12, lr=0.02, momentum=0.9)
    for theta, start in zip(train(net, data, training, generator(), draws=2), starts(net, 2), strict=True):
        plain = alone(start, net, data, training)
        assert float((theta - plain).norm() / (plain - start).norm()) < 1e-3
        a, b = (cross_entropy(net(t, data.x), data.y).item() for t in (theta, plain))
        assert a == pytest.approx(b, rel=1e-3)


@pytest.mark.parametrize("options", [{"momentum": 0.9}, {"momentum": 0.0}, {"optimiser": "adam", "lr": 0.01}])
def test_a_trainer_restored_goes_on_to_the_same_bits(options: dict[str, Any]) -> None:
    training = replace(PLAIN, steps=8, batch=5, schedule="cosine", **options)
    gen, first = generator(), Trainer(NET, DATA, training, starts(NET, 2))
    for _ in range(3):
        first.step(gen)
    state, moment = {name: value.clone() for name, value in first.state().items()}, gen.get_state()
    second = Trainer(NET, DATA, training, torch.zeros(2, NET.size))
    second.restore(state)
    other = generator()
    other.set_state(moment)
    for _ in range(5):
        first.step(gen)
        second.step(other)
    assert torch.equal(first.theta, second.theta)
    assert second.number == 8


def test_a_step_on_named_examples_is_a_step_on_those() -> None:
    trainer = Trainer(NET, DATA, PLAIN, starts(NET, 1))
    trainer.step(generator(), torch.tensor([[3, 7]]))
    start, two = starts(NET, 1)[0], DATA[torch.tensor([3, 7])]
    slope = torch.func.grad(lambda t: cross_entropy(NET(t, two.x), two.y))(start)
    assert torch.allclose(trainer.theta[0], start - 0.5 * slope, atol=1e-6)


def test_the_running_mean_weights_late_steps_more_and_sums_to_one() -> None:
    data, net, budget = gaussians(4), network("mlp-d1w4", (6,), 3), Training(steps=4, schedule="constant")
    gen = generator()
    trainer = Trainer(net, data, budget, net.init(gen)[None])
    thetas = [(trainer.step(gen), trainer.theta.clone())[1] for _ in range(4)]
    weights = [0.25 * 0.75**late for late in (3, 2, 1, 0)]
    mean = sum(w * theta for w, theta in zip(weights, thetas, strict=True)) / sum(weights)
    assert torch.allclose(train(net, data, budget, generator(), average=0.75), torch.as_tensor(mean), atol=1e-6)


def test_what_a_trainer_gave_stays_as_it_was() -> None:
    start = starts(NET, 2)
    trainer = Trainer(NET, DATA, replace(PLAIN, steps=3), start)
    trainer.step(generator())
    kept, copy = trainer.theta, trainer.theta.clone()
    trainer.step(generator())
    assert torch.equal(kept, copy)
    assert torch.equal(start, starts(NET, 2))


def test_a_state_of_other_networks_is_refused() -> None:
    other = Trainer(NET, DATA, PLAIN, starts(NET, 2)).state()
    with pytest.raises(ValueError, match="theta has shape"):
        Trainer(NET, DATA, PLAIN, starts(NET, 1)).restore(other)


@pytest.mark.parametrize("learner", [SGD(0.1, momentum=0.9), Adam(0.01)])
@pytest.mark.parametrize("rows", [None, 3])
def test_fit_takes_a_step_for_every_batch(learner: Learner, rows: int | None) -> None:
    start = starts(NET, rows or 1) if rows else starts(NET, 1)[0]
    parts, objective = [DATA[:5], DATA[5:9], DATA], Objective(NET)
    state = learner.init(start)
    for part in parts:
        state = learner.step(state, objective.gradient(state.theta, part))
    found = fit(objective, learner, start, iter(parts))
    assert torch.equal(found, state.theta)
    assert not found.requires_grad
    assert torch.equal(fit(objective, learner, start, []), start)


def test_examples_that_stay_in_a_file_are_trained_on(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", DATA.x.numpy())
    mapped = Mapped(tmp_path / "x.npy", DATA.y)
    for batch in (5, 99):
        training = replace(PLAIN, steps=4, batch=batch)
        assert torch.equal(*(train(NET, data, training, generator(), 2) for data in (DATA, mapped)))
