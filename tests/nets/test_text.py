"""Networks that read tokens, or embeddings that were learnt in their place."""

import pytest
import torch
from torch.func import vmap

from attar.core.errors import AttarError
from attar.data import Classes, Spec, Tokens
from attar.data.text import hashed
from attar.nets import default, network
from tests.known import gaussians, generator

WORDS = ("", "<unknown>", "good", "bad", "film", "book")
SPEC = Spec(Tokens(4, WORDS), Classes(("no", "yes")), hashed(WORDS, 8))


def test_tokens_and_their_embeddings_give_the_same_logits() -> None:
    net = network("embedding-bag", SPEC)
    theta, tokens = net.init(generator()), torch.tensor([[2, 4, 0, 0], [3, 5, 5, 2]])
    assert torch.allclose(net(theta, tokens), net(theta, SPEC.dense(tokens)))
    assert SPEC.stored(SPEC.dense(tokens)).tolist() == tokens.tolist()


def test_padding_does_not_count() -> None:
    net = network("embedding-bag", SPEC)
    theta = net.init(generator())
    short, long = torch.tensor([[2, 4, 0, 0]]), torch.tensor([[2, 4, 2, 4]])
    assert torch.allclose(net(theta, short), net(theta, long), atol=1e-6)


def test_several_networks_go_together() -> None:
    net = network("embedding-bag-d1w8", SPEC)
    thetas = torch.stack([net.init(generator(seed)) for seed in range(3)])
    x = SPEC.element.random(5, generator())
    loop = torch.stack([net(theta, x) for theta in thetas])
    assert torch.allclose(vmap(net, (0, None))(thetas, x), loop, atol=1e-6)
    assert net.separate


def test_a_network_that_cannot_read_the_examples_is_refused_with_one_that_can() -> None:
    assert default(SPEC) == "embedding-bag"
    with pytest.raises(AttarError, match="mlp does not read texts: use embedding-bag"):
        network("mlp", SPEC)
    with pytest.raises(AttarError, match="embedding-bag does not read numbers: use mlp"):
        network("embedding-bag", gaussians(2).spec)
