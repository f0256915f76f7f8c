"""Networks with normalised weights, against the same networks with plain ones."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

import attar
from attar.continual.finetune import widened
from attar.core.errors import AttarError
from attar.data import Classes, Spec, Tokens
from attar.data.text import hashed
from attar.nets import Network, fast, network
from attar.nets.architectures import ARCHITECTURES
from attar.nets.objective import Objective
from attar.nets.weightnorm import DIRECTION, LENGTH, normalise
from tests.known import gaussians, generator, images, slope

WORDS = ("", "<unknown>", "good", "bad", "film", "book")
TEXTS = Spec(Tokens(4, WORDS), Classes(("no", "yes")), hashed(WORDS, 8))
#: Without "linear", whose only layer is the last, and what has more of the blocks of "vgg11" and "resnet10".
EVERY = [name for name in ARCHITECTURES if name not in ("linear", "vgg16", "resnet18")]
SHORT = attar.Training(steps=5)
SMALL = ("mlp-d2w16", "convnet-d2w8", "lenet-xavier", "convnet-d2w8-batch-he", "textconv-w6", "birnn-w5", "bilstm-w5")


def problem(name: str) -> Spec:
    texts = ARCHITECTURES[next(known for known in ARCHITECTURES if name.startswith(known))].reads is Tokens
    return TEXTS if texts else Spec.of((1, 16, 16), 3)


def both(name: str) -> tuple[Network, Network]:
    """With and without normalised weights."""
    return network(f"{name}-weightnorm", problem(name)), network(name, problem(name))


def some(net: Network, seed: int = 0) -> Tensor:
    """Parameters near an initialisation whose lengths are no longer those of the directions."""
    theta = net.init(generator(seed)).double()
    return theta + 0.05 * torch.randn(theta.shape, generator=generator(seed + 9), dtype=torch.float64)


def plain_of(net: Network, theta: Tensor, other: Network) -> Tensor:
    """The weights W = g V / |V| as parameters of the plain network."""
    parts, found = net.unflatten(theta), []
    for name in other.unflatten(torch.zeros(other.size)):
        layer = name.removesuffix("weight")
        if name in parts:
            found.append(parts[name])
        else:
            g, v = parts[layer + LENGTH], parts[layer + DIRECTION]
            found.append(g[:, None] * F.normalize(v.flatten(1), dim=1))
    return torch.cat([part.flatten() for part in found])


def inputs(net: Network, n: int = 2) -> Tensor:
    x = net.element.random(n, generator(1))
    return x.double() if x.is_floating_point() else x


@pytest.mark.parametrize("name", EVERY)
def test_every_network_computes_the_logits_of_the_plain_one_with_these_weights(name: str) -> None:
    net, other = both(name)
    theta, x = some(net), inputs(net)
    logits = net(theta, x)
    assert torch.allclose(logits, other(plain_of(net, theta, other), x), rtol=1e-6, atol=1e-8)
    assert torch.allclose(F.linear(net.features(theta, x), *net.head(theta)), logits)
    assert net.head_index().shape[0] == net.classes
    assert net.activations == other.activations


@pytest.mark.parametrize("name", SMALL)
def test_a_new_network_is_the_plain_one_in_other_parameters(name: str) -> None:
    net, other = both(name)
    found = plain_of(net, net.init(generator()), other)
    assert torch.allclose(found, other.init(generator()), atol=1e-6)  # of the same draws, with the same initialisation
    lengths = [part for key, part in net.unflatten(net.init(generator())).items() if key.endswith(LENGTH)]
    assert net.size == other.size + sum(len(part) for part in lengths)


@pytest.mark.parametrize("name", SMALL)
def test_it_works_under_vmap_and_double_backward(name: str) -> None:
    net, _ = both(name)
    x = inputs(net)
    thetas = torch.stack([some(net, seed) for seed in range(2)])
    loop = torch.stack([net(theta, x) for theta in thetas])
    assert torch.allclose(vmap(net, (0, None))(thetas, x), loop, atol=1e-8)
    at = thetas[0].requires_grad_()
    torch.autograd.gradgradcheck(lambda theta: net(theta, x).logsumexp(1).sum(), (at,), fast_mode=True)


@pytest.mark.parametrize("name", ["mlp-d2w16", "convnet-d2w64", "resnet10-sigmoid"])  # smooth, where deep
def test_fast_gradients_are_those_of_plain_autograd(name: str) -> None:
    data = images(8).map(lambda x: F.interpolate(x, size=(16, 16)))
    net, _ = both(name)
    theta = some(net).float()
    found, wanted = Objective(net).gradient(theta, data), slope(net, theta, data)
    assert float((found - wanted).norm() / wanted.norm()) < 1e-4
    thetas = torch.stack([theta, net.init(generator())])
    together = Objective(net).gradient(thetas, data)
    with fast.plain():
        assert float((Objective(net).gradient(thetas, data) - together).norm() / together.norm()) < 1e-4


def test_a_gradient_does_not_change_with_the_length_of_a_direction() -> None:
    net, _ = both("mlp-d1w4")
    theta, x = some(net), inputs(net)
    longer = theta.clone()
    net.unflatten(longer)["body.1." + DIRECTION].mul_(3)
    assert torch.allclose(net(longer, x), net(theta, x))
    at = theta.requires_grad_()
    (found,) = torch.autograd.grad(net(at, x).square().sum(), at)
    v, across = (net.unflatten(part)["body.1." + DIRECTION] for part in (theta.detach(), found))
    assert torch.allclose((v * across).sum(1), torch.zeros(4, dtype=torch.float64), atol=1e-10)


def test_outputs_for_new_classes_leave_the_old_logits_alone() -> None:
    old, new = (network("convnet-d2w8-weightnorm", (1, 8, 8), classes) for classes in (2, 5))
    theta, x = old.init(generator()), torch.randn(3, 1, 8, 8, generator=generator(1))
    assert torch.allclose(new(widened(old, theta, new, generator(2)), x)[:, :2], old(theta, x), atol=1e-6)


@pytest.mark.parametrize(
    ("method", "sampler"),
    [("vbpc", "last-layer-vi"), ("dc", "last-layer-vi"), ("dc", "laplace"), ("lcmat-s", "laplace")],
)
def test_methods_that_look_into_the_network_take_it(method: str, sampler: str) -> None:
    data, name = gaussians(), "mlp-d1w8-weightnorm"
    descent = {} if method == "lcmat-s" else {"steps": 3}
    coreset = attar.reduce(data, method, per_class=2, network=name, training=SHORT, descent=descent)
    posterior = attar.infer(coreset, draws=2, sampler=sampler, training=SHORT)
    assert posterior.network.name == name
    assert 0 <= attar.evaluate(posterior, data).accuracy <= 1


def test_the_layers_are_all_seen_and_only_the_last_has_a_place_in_theta() -> None:
    net, _ = both("convnet-d2w8")
    logits, seen = net.layers(some(net), inputs(net))
    assert [layer.index.numel() > 0 for layer in seen] == [False, False, True]
    assert torch.equal(seen[-1].output, logits)


def test_a_module_of_the_user_with_a_normalised_last_layer_has_no_features() -> None:
    net = network(lambda: nn.Sequential(nn.Linear(4, 4), weight_norm(nn.Linear(4, 3))), (4,), 3)
    with pytest.raises(AttarError, match=r"must be a plain nn\.Linear"):
        net.features(net.init(generator()), torch.zeros(2, 4))


def test_a_row_worked_by_hand() -> None:
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[3.0, 4.0]]))
    normalise(layer)
    parts = dict(layer.named_parameters())
    assert parts[LENGTH].tolist() == [5.0]
    with torch.no_grad():
        parts[LENGTH].fill_(10.0)
    assert torch.allclose(layer.weight, torch.tensor([[6.0, 8.0]]))
