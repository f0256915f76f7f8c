from itertools import pairwise

import pytest
import torch
from torch import Generator, nn
from torch.func import vmap
from torch.nn import functional as F

from attar.core.errors import AttarError
from attar.nets import Network, network
from attar.nets.alexnet import LocalNorm
from attar.nets.architectures import ARCHITECTURES
from attar.nets.densenet import Dense
from attar.nets.names import parse
from attar.nets.resnet import PreResidual, Residual, Thinned

SMALL = (
    "mlp-d2w16",
    "convnet-d3w8",
    "convnet-d2w4b3",
    "convnet-d3w8-batch-sigmoid-max",
    "convnet-d3w8-layer",
    "convnet-d3w8-group",
)
COSINE = ("mlp-d2w16-cosine", "convnet-d3w8-cosine", "resnet10-cosine")
AS_OTHERS = ("mlp", "convnet", "vgg16", "resnet18")  #: smaller ones of the same blocks are tested
OF_NUMBERS = [name for name, known in ARCHITECTURES.items() if known.reads is None]


def generator(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ("cn-d3w128", 320_010),
        ("cn-d3w256", 1_229_834),
        ("cn-d5w128", 596_490),
        ("alexnet", 1_872_202),
        ("vgg11", 9_231_114),
        ("vgg16", 14_728_266),
        ("alexcifarnet", 1_756_426),
        ("resnet18", 11_173_962),
        ("resnet32", 464_154),
    ],
)
def test_sizes_are_the_published_ones(spec: str, size: int) -> None:
    assert network(spec, (3, 32, 32), 10).size == size


def test_branches_have_their_features_side_by_side_and_less_noise_than_one() -> None:
    one, four = (network(f"convnet-d2w8{branches}", (1, 12, 12), 3) for branches in ("", "b4"))
    (_, last), gen = one.head(one.init(generator())), generator(2)
    assert four.size - last.numel() == 4 * (one.size - last.numel())
    x = torch.randn(5, 1, 12, 12, generator=generator(1))
    parts = four.features(four.init(gen), x).chunk(4, 1)
    assert all(not torch.equal(a, b) for a, b in pairwise(parts))

    def spread(net: Network) -> float:
        seen = torch.stack([net.features(net.init(gen), x) for _ in range(20)])
        return float((seen @ seen.mT / seen.shape[2]).std(0).mean())

    assert spread(four) < 0.7 * spread(one)


def test_inception_has_the_size_of_the_paper_s_without_its_auxiliary_classifier() -> None:
    assert network("inception-v3", (3, 32, 32), 1000).size == 23_834_568


@pytest.mark.parametrize(("spec", "millions"), [("wrn-16-8", 11.0), ("densenet121", 7.0), ("resnet10", 4.9)])
def test_sizes_are_near_the_published_ones(spec: str, millions: float) -> None:
    assert network(spec, (3, 32, 32), 10).size / 1e6 == pytest.approx(millions, rel=0.01)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 48, 40)])
@pytest.mark.parametrize("spec", [*OF_NUMBERS, *COSINE])
def test_the_head_on_the_features_gives_the_logits(spec: str, shape: tuple[int, ...]) -> None:
    net = network(spec, shape, 7)
    theta, x = net.init(generator()), torch.randn(2, *shape, generator=generator(1))
    logits = net(theta, x)
    assert logits.shape == (2, 7)
    assert torch.equal(F.linear(net.features(theta, x), *net.head(theta)), logits)
    assert not torch.allclose(logits[0], logits[1], atol=1e-4)  # the examples still tell


@pytest.mark.parametrize("spec", OF_NUMBERS)
def test_logits_equal_those_of_the_plain_module(spec: str) -> None:
    shape, net = (3, 16, 16), network(spec, (3, 16, 16), 5)
    name, options = parse(spec)
    with torch.random.fork_rng(devices=[]):
        own = {key: options[key] for key in ARCHITECTURES[name].options}
        module = ARCHITECTURES[name].build(shape, 5, **own)
    theta, x = net.init(generator()).double(), torch.randn(2, *shape, generator=generator(1)).double()
    nn.utils.vector_to_parameters(theta, module.double().parameters())
    assert torch.allclose(net(theta, x), module(x), atol=1e-10)


@pytest.mark.parametrize("spec", [*SMALL, *COSINE, *(name for name in OF_NUMBERS if name not in AS_OTHERS)])
def test_vmap_over_theta_equals_a_loop(spec: str) -> None:
    net = network(spec, (1, 16, 16), 3)
    thetas = torch.stack([net.init(generator(seed)) for seed in range(2)]).double()  # deep networks amplify rounding
    x = torch.randn(2, 1, 16, 16, generator=generator()).double()
    loop = torch.stack([net(theta, x) for theta in thetas])
    assert torch.allclose(vmap(net, (0, None))(thetas, x), loop, atol=1e-8)
    features = torch.stack([net.features(theta, x) for theta in thetas])
    assert torch.allclose(vmap(net.features, (0, None))(thetas, x), features, atol=1e-8)


def test_convnet_is_convolution_instance_norm_relu_average() -> None:
    net = network("convnet-d2w4", (3, 28, 28), 5)
    theta, h = net.init(generator()), torch.randn(2, 3, 28, 28, generator=generator(1))
    x, parts = h, list(net.unflatten(theta).values())
    for block in range(2):
        weight, bias, scale, shift = parts[4 * block : 4 * block + 4]
        h = F.conv2d(h, weight, bias, padding=3 if block == 0 else 1)  # 28x28 becomes 32x32
        h = F.avg_pool2d(F.relu(F.instance_norm(h, weight=scale, bias=shift)), 2)
    assert h.shape == (2, 4, 8, 8)
    assert torch.allclose(net(theta, x), F.linear(h.flatten(1), *parts[-2:]), atol=1e-5)


@pytest.mark.parametrize(
    "spec", ["mlp", "convnet-d3w8", "convnet-d5w8", "alexnet", "alexcifarnet", "vgg11", "vgg16", "resnet32", "wrn-16-8"]
)
@pytest.mark.parametrize("shape", [(1, 8, 8), (2, 30, 9)])
def test_small_and_oblong_images_keep_their_difference(spec: str, shape: tuple[int, ...]) -> None:
    # Instance norm of a 1x1 map is constant: then all examples would have the same logits.
    net = network(spec, shape, 10)
    logits = net(net.init(generator()), torch.randn(2, *shape, generator=generator(1)))
    assert (logits[0] - logits[1]).abs().max() > 1e-4


@pytest.mark.parametrize(
    ("spec", "side"),
    [("convnet", 2), ("lenet", 12), ("resnet18", 9), ("resnet32", 5), ("inception-v3", 11), ("densenet121", 16)],
)
def test_the_smallest_image_works_and_a_smaller_one_is_refused(spec: str, side: int) -> None:
    net = network(spec, (1, side, side), 3)
    logits = net(net.init(generator()), torch.randn(2, 1, side, side, generator=generator(1)))
    assert (logits[0] - logits[1]).abs().max() > 1e-6
    with pytest.raises(AttarError, match=f"at least {side}x{side}"):
        network(spec, (1, side, side - 1), 3)


@pytest.mark.parametrize("spec", ["convnet", "lenet", "resnet10"])
def test_feature_vectors_are_sent_to_the_perceptron(spec: str) -> None:
    with pytest.raises(AttarError, match="use mlp"):
        network(spec, (20,), 3)


def test_an_option_changes_what_is_built() -> None:
    plain = network("convnet-d2w8", (1, 8, 8), 3)
    assert network("convnet-d2w8-nonorm", (1, 8, 8), 3).size == plain.size - 2 * 2 * 8
    assert network("convnet-d2w8-nopool", (1, 8, 8), 3).size == plain.size + 3 * 8 * (64 - 4)
    theta, x = plain.init(generator()), torch.randn(2, 1, 8, 8, generator=generator(1))
    for option in ("batch", "layer", "group", "sigmoid", "leakyrelu", "max"):
        other = network(f"convnet-d2w8-{option}", (1, 8, 8), 3)
        assert other.size == plain.size
        assert not torch.allclose(other(theta, x), plain(theta, x), atol=1e-4)


def test_a_shortcut_without_parameters_keeps_every_second_pixel_among_channels_of_zeros() -> None:
    x = torch.randn(2, 4, 5, 5, generator=generator())
    y = Thinned(4, 2)(x)
    assert torch.equal(y[:, 2:6], x[:, :, ::2, ::2])
    assert not y[:, :2].any()
    assert not y[:, 6:].any()


def test_the_local_norm_is_that_of_pytorch() -> None:
    x = 20 * torch.randn(2, 7, 3, 3, generator=generator()).double()
    assert torch.allclose(LocalNorm()(x), F.local_response_norm(x, 4, alpha=0.001 / 9, beta=0.75, k=1.0))


def test_residual_blocks_whose_branch_is_zero_hand_on_their_input() -> None:
    x = torch.randn(2, 8, 6, 6, generator=generator())
    with torch.random.fork_rng(devices=[]):
        after, before = Residual(8, 8, 1, "instance", "relu"), PreResidual(8, 8, 1, "instance", "relu")
    for block in (after, before):
        for parameter in block.branch.parameters():
            nn.init.zeros_(parameter)
    assert torch.equal(after(x), x.relu())
    assert torch.equal(before(x), x)


def test_a_dense_layer_keeps_its_input_and_adds_the_growth() -> None:
    x = torch.randn(2, 8, 6, 6, generator=generator())
    with torch.random.fork_rng(devices=[]):
        y = Dense(8, "instance", "relu")(x)
    assert y.shape == (2, 8 + 32, 6, 6)
    assert torch.equal(y[:, :8], x)
