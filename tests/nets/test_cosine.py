"""The cosine classifier: angles alone decide, and all derivatives exist."""

import pickle

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.functional import cosine_similarity

from attar import infer
from attar.core.errors import AttarError
from attar.nets import Network, network
from attar.nets.cosine import SCALE, Cosine, Unit
from attar.nets.objective import Objective
from attar.nets.train import Training, train
from tests.known import gaussians, generator


def test_logits_are_scaled_cosines_of_features_and_class_weights() -> None:
    net = network("mlp-d1w8-cosine", (6,), 3)
    plain = network("mlp-d1w8", (6,), 3)
    theta, x = net.init(generator()), gaussians().x
    *body, weight, gain = net.unflatten(theta).values()
    with torch.no_grad():
        same = torch.cat([*(part.flatten() for part in body), torch.zeros(3 * 8 + 3)])
        features = plain.features(same, x)
    wanted = SCALE * gain * cosine_similarity(features[:, None], weight, dim=-1)
    assert torch.allclose(net(theta, x), wanted, atol=1e-4)
    assert torch.allclose(net.features(theta, x).norm(dim=1), torch.ones(len(x)), atol=1e-4)


def test_longer_weights_of_a_class_do_not_change_the_logits() -> None:
    net = network("linear-cosine", (6,), 3)
    theta, x = net.init(generator()), gaussians().x
    longer = theta.clone()
    longer[net.outputs()[1]] *= 100
    assert torch.allclose(net(longer, x), net(theta, x), atol=1e-4)


def test_first_and_second_derivatives_exist_also_at_zero() -> None:
    with torch.random.fork_rng(devices=[]):
        layer = torch.nn.Sequential(Unit(), Cosine(4, 3)).double()
    x = torch.randn(2, 4, generator=generator()).double().requires_grad_()
    assert gradcheck(layer, x)
    assert gradgradcheck(layer, x)
    zero = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(layer(zero).square().sum() + layer(zero)[0, 0], zero, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), zero)
    assert torch.isfinite(slope).all()
    assert torch.isfinite(second).all()


def test_fast_gradients_are_those_of_autograd() -> None:
    data, net = gaussians(), network("mlp-d1w8-cosine", (6,), 3)
    theta = net.init(generator())
    objective = Objective(net)
    assert torch.allclose(objective.gradient(theta, data), objective.gradient(theta, data, graph=True), atol=1e-6)


def test_it_learns() -> None:
    data, net = gaussians(), network("mlp-d1w16-cosine", (6,), 3)
    theta = train(net, data, Training(steps=100), generator())[0]
    assert float((net(theta, data.x).argmax(1) == data.y).float().mean()) > 0.95


@pytest.mark.parametrize("sampler", ["last-layer-vi", "laplace"])
def test_samplers_of_a_linear_last_layer_refuse_it(sampler: str) -> None:
    with pytest.raises(AttarError, match="is a cosine classifier, and this needs a linear one: use the network with"):
        infer(gaussians(), sampler, draws=1, network="linear-cosine", training=Training(steps=2))


def test_normalised_weights_and_a_cosine_classifier_go_together_into_other_processes() -> None:
    both = network("mlp-d1w8-weightnorm-cosine", (5,), 3)
    theta, x = both.init(generator()), torch.randn(4, 5, generator=generator(1))
    again: Network = pickle.loads(pickle.dumps(both))
    assert again.name == both.name == "mlp-d1w8-weightnorm-cosine"
    assert torch.equal(again(theta, x), both(theta, x))
    assert torch.allclose(both.features(theta, x).norm(dim=1), torch.ones(4), atol=1e-3)
