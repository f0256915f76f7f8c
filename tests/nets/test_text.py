"""Networks that read tokens, or embeddings that were learnt in their place."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import vmap

from attar.core.errors import AttarError
from attar.data import Classes, Spec, Tokens
from attar.data.text import hashed
from attar.nets import default, network
from tests.known import gaussians, generator

WORDS = ("", "<unknown>", "good", "bad", "film", "book")
SPEC = Spec(Tokens(4, WORDS), Classes(("no", "yes")), hashed(WORDS, 8))


NAMES = ("embedding-bag", "textconv-w6", "birnn-w5", "bilstm-w5")
every = pytest.mark.parametrize("name", NAMES)


@every
def test_tokens_and_their_embeddings_give_the_same_logits(name: str) -> None:
    net = network(name, SPEC)
    theta, tokens = net.init(generator()), torch.tensor([[2, 4, 0, 0], [3, 5, 5, 2]])
    assert torch.allclose(net(theta, tokens), net(theta, SPEC.dense(tokens)))
    assert torch.allclose(F.linear(net.features(theta, tokens), *net.head(theta)), net(theta, tokens))
    assert SPEC.stored(SPEC.dense(tokens)).tolist() == tokens.tolist()


def test_padding_does_not_count_in_a_mean() -> None:
    net = network("embedding-bag", SPEC)
    theta = net.init(generator())
    short, long = torch.tensor([[2, 4, 0, 0]]), torch.tensor([[2, 4, 2, 4]])
    assert torch.allclose(net(theta, short), net(theta, long), atol=1e-6)


@every
def test_more_padding_changes_nothing_and_other_words_or_another_order_do(name: str) -> None:
    net, wide = network(name, SPEC), network(name, Spec(Tokens(9, WORDS), SPEC.target, SPEC.transform))
    theta = net.init(generator())
    text, padded = torch.tensor([[2, 4, 3, 0]]), torch.tensor([[2, 4, 3, 0, 0, 0, 0, 0, 0]])
    assert torch.allclose(net(theta, text), wide(theta, padded), atol=1e-6)
    assert not torch.allclose(net(theta, text), net(theta, torch.tensor([[2, 4, 5, 0]])), atol=1e-4)
    turned = torch.allclose(net(theta, text), net(theta, torch.tensor([[3, 4, 2, 0]])), atol=1e-5)
    assert turned == (name == "embedding-bag")


@every
def test_several_networks_go_together(name: str) -> None:
    net = network(name, SPEC)
    thetas = torch.stack([net.init(generator(seed)) for seed in range(3)])
    x = SPEC.element.random(5, generator())
    for given in (x, SPEC.dense(x)):
        loop = torch.stack([net(theta, given) for theta in thetas])
        assert torch.allclose(vmap(net, (0, None))(thetas, given), loop, atol=1e-6)
    assert net.separate


@every
def test_gradients_of_gradients_are_right_in_parameters_and_embeddings(name: str) -> None:
    net = network(name, SPEC)
    theta, y = net.init(generator()).double(), torch.tensor([0, 1])
    x = torch.randn(2, 4, 8, generator=generator(1)).double()

    def slope(theta: Tensor, x: Tensor) -> Tensor:
        found: Tensor = torch.func.grad(lambda at: F.cross_entropy(net(at, x), y))(theta)
        return found.square().sum()

    theta.requires_grad_()
    x.requires_grad_()
    of_theta, of_x = torch.autograd.grad(slope(theta, x), (theta, x))
    gen, step = generator(2), 1e-6
    way, change = torch.randn(theta.shape, generator=gen).double(), torch.randn(x.shape, generator=gen).double()
    with torch.no_grad():
        there, back = (slope(theta + s * step * way, x + s * step * change) for s in (1, -1))
    numeric = (there - back) / (2 * step)
    assert torch.allclose(of_theta @ way + (of_x * change).sum(), numeric, rtol=1e-4, atol=1e-8)


def test_recurrent_layers_are_those_of_pytorch() -> None:
    tokens = SPEC.element.random(6, generator()).clamp_min(1)  # no padding
    rows = SPEC.dense(tokens)
    for name, kind in (("birnn-w5", nn.RNN), ("bilstm-w5", nn.LSTM)):
        net = network(name, SPEC)
        theta = net.init(generator())
        parts = net.unflatten(theta)
        with torch.random.fork_rng(devices=[]):
            theirs = kind(8, 5, batch_first=True, bidirectional=True)
        for ours, end in (("forwards", "l0"), ("backwards", "l0_reverse")):
            state = {key.rpartition(f"{ours}.")[2]: part for key, part in parts.items() if f"{ours}." in key}
            for key, part in (("ih", "inputs.weight"), ("hh", "states.weight")):
                theirs.get_parameter(f"weight_{key}_{end}").data.copy_(state[part])
            theirs.get_parameter(f"bias_ih_{end}").data.copy_(state["inputs.bias"])
            theirs.get_parameter(f"bias_hh_{end}").data.zero_()
        last = theirs(rows)[1]
        states = last[0] if isinstance(last, tuple) else last
        assert torch.allclose(net.features(theta, tokens), torch.cat([states[0], states[1]], 1), atol=1e-5)


def test_a_text_convolution_is_the_largest_response_over_windows() -> None:
    net = network("textconv-w6", SPEC)
    theta = net.init(generator())
    tokens = torch.tensor([[2, 4, 3, 5]])
    rows, parts = SPEC.dense(tokens)[0], list(net.unflatten(theta).values())
    wide = torch.cat([torch.zeros(4, 8), rows, torch.zeros(4, 8)])
    found = []
    for number, k in enumerate((3, 4, 5)):
        weight, bias = parts[2 * number].view(6, 8, k), parts[2 * number + 1]
        windows = [wide[4 + t : 4 + t + k] for t in range(1 - k, 4)]
        found.append(torch.stack([(weight * window.T).sum((1, 2)) + bias for window in windows]).relu().amax(0))
    assert torch.allclose(net.features(theta, tokens)[0], torch.cat(found), atol=1e-6)


def test_sizes_of_text_networks() -> None:
    head = 2 * (3 * 100 + 1)
    assert network("textconv", SPEC).size == 100 * (8 * (3 + 4 + 5) + 3) + head
    assert network("bilstm-w10", SPEC).size == 2 * 4 * 10 * (8 + 10 + 1) + 2 * (20 + 1)
    assert network("birnn-w10", SPEC).name == "birnn-w10"
    with pytest.raises(AttarError, match="Unknown option of bilstm 'd2'"):
        network("bilstm-d2", SPEC)


@every
def test_a_text_network_does_not_read_numbers(name: str) -> None:
    with pytest.raises(AttarError, match=f"{name.partition('-w')[0]} does not read numbers: use mlp"):
        network(name, gaussians(2).spec)


def test_a_network_that_cannot_read_the_examples_is_refused_with_one_that_can() -> None:
    assert default(SPEC) == "embedding-bag"
    with pytest.raises(AttarError, match="mlp does not read texts: use embedding-bag"):
        network("mlp", SPEC)
    with pytest.raises(AttarError, match="textconv does not read numbers: use convnet"):
        network("textconv", (3, 32, 32), 10)
