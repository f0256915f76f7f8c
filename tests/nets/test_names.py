import pickle

import pytest
import torch
from torch import nn

from attar.core.cost import resident
from attar.core.errors import AttarError
from attar.data import Spec
from attar.nets import NETWORKS, default, network
from attar.nets.names import parse


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("mlp", "mlp-d2w128"),
        ("mlp-w100-d1", "mlp-d1w100"),
        ("mlp-d2w100-sigmoid", "mlp-d2w100-sigmoid"),
        ("convnet", "convnet-d3w128"),
        ("CN-D3W32", "convnet-d3w32"),
        ("cn-w16", "convnet-d3w16"),
        ("convnet-d3w128-instance-relu-avg", "convnet-d3w128"),
        ("convnet-max-d2w8-batch-sigmoid", "convnet-d2w8-batch-sigmoid-max"),
        ("convnet-d1w4-nonorm-nopool-leakyrelu", "convnet-d1w4-nonorm-leakyrelu-nopool"),
        ("LeNet", "lenet"),
        ("lenet-xavier", "lenet-xavier"),
        ("convnet-weightnorm-d2w8-he", "convnet-d2w8-he-weightnorm"),
        ("alexnet-group", "alexnet-group"),
        ("cn-cosine-w16-he", "convnet-d3w16-he-cosine"),
        ("wrn-16-8-batch", "wrn-16-8-batch"),
        ("cn-w4x8x16-nonorm", "convnet-d3w4x8x16-nonorm"),
        ("mlp-w7x5-d2", "mlp-d2w7x5"),
        ("convnet-d3w8b1", "convnet-d3w8"),
        ("cn-w4x8x16b3", "convnet-d3w4x8x16b3"),
    ],
)
def test_names_parse_and_round_trip(spec: str, name: str) -> None:
    net = network(spec, (1, 28, 28), 10)
    assert net.name == name
    again = network(net.name, (1, 28, 28), 10)
    assert (again.name, again.size) == (net.name, net.size)


def test_a_width_for_each_layer_sets_the_channels_of_each_block() -> None:
    blocks = 3 * (9 * 1 + 3) + 4 * (9 * 3 + 3) + 5 * (9 * 4 + 3)  # weights and bias of a convolution, scale and shift
    assert network("convnet-d3w3x4x5", (1, 28, 28), 10).size == blocks + 10 * (16 * 5 + 1)
    assert network("mlp-d2w7x5", (6,), 3).size == 7 * 7 + 5 * 8 + 3 * 6


@pytest.mark.parametrize("name", NETWORKS)
def test_every_listed_name_is_a_name(name: str) -> None:
    assert parse(name)[0] == name
    assert NETWORKS[name]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("convnt", "did you mean 'convnet'"),
        ("cnn-d3w128", "Unknown network"),
        ("convnet-d0w8", "Unknown option of convnet 'd0w8'"),
        ("convnet-", "Unknown option of convnet ''"),
        ("convnet-none", "Unknown option of convnet 'none'"),
        ("mlp-batch", "Unknown option of mlp 'batch'"),
        ("lenet-d3w8", "Unknown option of lenet 'd3w8'"),
        ("convnet-max-avg", "sets the pool twice"),
        ("lenet-weightnorm-weightnorm", "sets the weights twice"),
        ("linear-weightnorm", "linear has no layer before its last to normalise: leave weightnorm out"),
        ("knn-weightnorm", "knn has no layer before its last to normalise"),
        ("convnet-d3w10-group", "4 divides"),
        ("knn-cosine", "Unknown option of knn 'cosine'"),
        ("convnet-d3w4x8", "names 2 widths and needs 3: give one for each layer"),
        ("textconv-w4x8", "names 2 widths and needs 1: give one for each layer"),
        ("convnet-d3w4x", "Unknown option of convnet 'd3w4x'"),
        ("custom:Mine", "module of your own"),
    ],
)
def test_bad_names_say_what_would_be_good(spec: str, words: str) -> None:
    with pytest.raises(AttarError, match=words):
        network(spec, (1, 28, 28), 10)


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ("convnet-d3w100000", (9 + 3) * 10**5 + 2 * (9 * 10**5 + 3) * 10**5 + 10 * (16 * 10**5 + 1)),
        ("mlp-d1w1000000", 785 * 10**6 + 10 * (10**6 + 1)),
        ("mlp-d999w9999999", 785 * 9999999 + 998 * 10**7 * 9999999 + 10 * 10**7),
    ],
)
def test_an_absurd_size_is_told_and_refused_before_it_is_built(spec: str, size: int) -> None:
    before, state = resident(), torch.get_rng_state()
    with pytest.raises(AttarError, match=f"{spec} has {size:,} parameters .* choose a smaller width or depth"):
        network(spec, (1, 28, 28), 10)
    assert resident() - before < 2**26
    assert torch.equal(state, torch.get_rng_state())


def test_a_network_is_returned_as_it_is_where_it_fits() -> None:
    net = network("linear", (4,), 3)
    assert network(net, (4,), 3) is net
    with pytest.raises(AttarError, match="does not fit"):
        network(net, (4,), 2)


def test_a_users_network_carries_its_class_in_its_name() -> None:
    assert network(lambda: nn.Linear(4, 3), torch.Size([4]), 3).name == "custom:Linear"


@pytest.mark.parametrize(("shape", "classes"), [((4,), 1), ((), 3), ((0,), 3)])
def test_impossible_sizes_are_refused(shape: tuple[int, ...], classes: int) -> None:
    with pytest.raises(AttarError, match="A network needs"):
        network("linear", shape, classes)


@pytest.mark.parametrize("option", ["", "-xavier", "-weightnorm"])
def test_a_network_can_be_sent_to_another_process(option: str) -> None:
    net = network(f"convnet-d1w4{option}", (1, 8, 8), 3)
    sent = pickle.loads(pickle.dumps(net))
    theta, x = sent.init(torch.Generator().manual_seed(0)), torch.ones(2, 1, 8, 8)
    assert sent.name == net.name
    assert torch.equal(sent(theta, x), net(net.init(torch.Generator().manual_seed(0)), x))


def test_the_default_fits_the_examples() -> None:
    assert (default(Spec.of((20,), 2)), default(Spec.of((3, 32, 32), 2))) == ("mlp", "convnet-d3w32")
    assert network(default(Spec.of((1, 8, 8), 10)), (1, 8, 8), 10).shape == (1, 8, 8)


@pytest.mark.parametrize(("init", "scale"), [("xavier", (2 / 300) ** 0.5), ("he", (2 / 200) ** 0.5)])
def test_a_name_may_set_the_scale_of_initial_weights(init: str, scale: float) -> None:
    net = network(f"mlp-d1w100-{init}", (200,), 10)
    weights = net.unflatten(net.init(torch.Generator().manual_seed(0)))
    first = next(value for value in weights.values() if value.shape == (100, 200))
    assert float(first.std()) == pytest.approx(scale, rel=0.05)
    assert all(float(value.abs().max()) == 0 for value in weights.values() if value.ndim == 1)
