import torch

from attar.board.centred import Centred, train_centred
from attar.data.data import Data
from attar.nets import network
from attar.nets.losses import targets
from attar.nets.train import Training
from tests.known import gaussians, generator

SQUARED = Training(steps=200, batch=64, lr=0.05, weight_decay=0.0, schedule="constant", loss="squared")


def trained(data: Data, steps: int = 200, patience: int = 200, every: int = 20, held: Data | None = None) -> Centred:
    net, how = network("mlp-d1w16", data.spec), Training(**{**vars(SQUARED), "steps": steps})
    return train_centred(data, net, how, 2, generator(), held or data, scale=4.0, every=every, patience=patience)


def test_an_untrained_network_says_nothing() -> None:
    data = gaussians()
    net = network("mlp-d1w16", data.spec)
    theta = net.init(generator())[None]
    said = Centred(net, theta, theta, data.spec).predict(data.x)
    assert torch.allclose(said, torch.full_like(said, 1 / 3))


def test_outputs_minus_those_at_the_start_reach_the_scaled_targets() -> None:
    data = gaussians(4)
    found = trained(data, steps=800, patience=800, every=800)
    net = found.network
    for end, first in zip(found.theta, found.start, strict=True):
        gap = net(end, data.x) - net(first, data.x)
        assert torch.allclose(gap.double(), 4 * targets(data.y, 3), atol=0.3)
    assert bool((found.predict(data.x).argmax(1) == data.y).all())


def test_it_stops_by_validation_accuracy_and_keeps_the_best() -> None:
    data = gaussians(8)
    wrong = Data(data.x, (data.y + 1) % 3, spec=data.spec)
    early = trained(data, held=wrong, steps=200, patience=20, every=5)
    late = trained(data, steps=200)
    moved = [float((run.theta - run.start).norm()) for run in (early, late)]
    assert moved[0] < moved[1]


def test_it_is_a_posterior_like_others() -> None:
    found = trained(gaussians(4), steps=5)
    assert found.sample(3, generator()).shape == (3, found.network.size)
    assert found.to("cpu").predict(gaussians(4).x).shape == (12, 3)
