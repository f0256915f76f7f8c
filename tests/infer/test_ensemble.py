import torch

from attar.infer.ensemble import Ensemble
from attar.nets import network
from attar.nets.train import Training, train
from tests.truth import gaussians, generator

DATA = gaussians(8)
NET = network("mlp-d1w8", DATA.shape, 3)


def test_every_draw_is_a_training_from_a_start_of_its_own() -> None:
    training = Training(steps=5)
    posterior = Ensemble().infer(DATA, NET, training, 3, generator())
    assert torch.equal(posterior.theta, train(NET, DATA, training, generator(), 3))
    assert posterior.domain is DATA.domain


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
