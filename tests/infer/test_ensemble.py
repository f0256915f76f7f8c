from dataclasses import replace

import torch

import attar
from attar.infer.ensemble import Ensemble
from attar.nets import network
from attar.nets.train import Training, train
from tests.known import gaussians, generator

DATA = gaussians(8)
NET = network("mlp-d1w8", DATA.shape, 3)


def test_every_draw_is_a_training_from_a_start_of_its_own() -> None:
    training = Training(steps=5)
    posterior = Ensemble().infer(DATA, NET, training, 3, generator())
    assert torch.equal(posterior.theta, train(NET, DATA, training, generator(), 3))
    assert posterior.spec is DATA.spec


def test_every_draw_classifies_what_it_was_trained_on() -> None:
    posterior = Ensemble().infer(DATA, NET, Training(steps=100), 3, generator())
    for theta in posterior.theta:
        assert torch.equal(NET(theta, DATA.x).argmax(1), DATA.y)


def test_draws_disagree_more_where_there_is_no_data() -> None:
    posterior = Ensemble().infer(DATA, NET, Training(steps=100), 8, generator())

    def spread(x: torch.Tensor) -> float:
        return torch.stack([NET(theta, x).softmax(1) for theta in posterior.theta]).var(0).sum(1).mean().item()

    between = DATA.x.mean(0) + torch.randn(64, 6, generator=generator(1))
    assert spread(between) > 3 * spread(DATA.x)


def test_an_example_that_stands_for_three_is_trained_on_as_three() -> None:
    counts = torch.arange(len(DATA)) % 3 + 1
    weighted, repeated = (
        replace(DATA, weights=counts.float() * 7),
        DATA[torch.arange(len(DATA)).repeat_interleave(counts)],
    )
    first, second = (Ensemble().infer(data, NET, Training(steps=30), 2, generator()) for data in (weighted, repeated))
    assert torch.allclose(first.theta, second.theta, atol=1e-5)
    assert not torch.allclose(
        first.theta, Ensemble().infer(DATA, NET, Training(steps=30), 2, generator()).theta, atol=1e-2
    )


def test_the_weights_of_a_selection_reach_the_training_through_the_coreset() -> None:
    few = Training(steps=20)
    coresets = [
        attar.reduce(DATA, "lcmat-s", per_class=2, network="mlp-d1w8", options={"weighted": on}, training=few)
        for on in (True, False)
    ]
    heavy, even = coresets
    assert heavy.data.weights is not None
    assert even.data.weights is None
    assert torch.equal(heavy.data.x, even.data.x)
    assert float(heavy.data.weights.sum()) == len(DATA)
    assert not torch.equal(attar.infer(heavy, draws=1).theta, attar.infer(even, draws=1).theta)
