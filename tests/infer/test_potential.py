from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from attar.data import Data
from attar.infer.hmc import HMC
from attar.infer.potential import NetworkPotential, Prior, Whitened
from attar.nets import network
from attar.nets.weightnorm import DIRECTION, LENGTH
from tests.infer.targets import Target, errors
from tests.known import gaussians, generator, images

DATA = gaussians(4)
NET = network("mlp-d1w5", DATA.shape, 3)
PRIOR = Prior(NET, 2.0)


def rows(n: int = 3, seed: int = 0) -> torch.Tensor:
    gen = generator(seed)
    return torch.stack([NET.init(gen) for _ in range(n)]).double()


def potential(data: Data = DATA, examples: float | None = None, batch: int = 256) -> NetworkPotential:
    return NetworkPotential(NET, data.map(torch.Tensor.double), PRIOR, examples=examples, batch=batch)


def test_the_value_is_minus_the_log_of_likelihood_and_prior() -> None:
    theta = rows()
    for row, value in zip(theta, potential().value(theta), strict=True):
        likelihood = cross_entropy(NET(row, DATA.x.double()), DATA.y, reduction="sum")
        gaussian = torch.distributions.Normal(PRIOR.mean.double(), PRIOR.std.double())
        at_mean = gaussian.log_prob(PRIOR.mean.double()).sum()  # U leaves the constant out
        assert value.item() == pytest.approx((likelihood - gaussian.log_prob(row).sum() + at_mean).item())


def test_examples_scale_the_likelihood_and_not_the_prior() -> None:
    theta, own = rows(), potential()
    likelihood = own.value(theta) - PRIOR.minus_log(theta)
    more = potential(examples=10.0 * len(DATA))
    assert torch.allclose(more.value(theta), 10 * likelihood + PRIOR.minus_log(theta))


def test_an_example_of_weight_two_counts_as_two_examples() -> None:
    weights = torch.ones(len(DATA))
    weights[0] = 2
    twice = DATA[torch.tensor([0, *range(len(DATA))])]
    weighted = potential(replace(DATA, weights=weights), examples=len(DATA) + 1.0)
    assert torch.allclose(weighted.value(rows()), potential(twice).value(rows()))


def test_the_gradient_is_that_of_the_value() -> None:
    theta, direction = rows(), torch.randn(3, NET.size, generator=generator(1), dtype=torch.float64)
    rise = (potential().value(theta + 1e-6 * direction) - potential().value(theta - 1e-6 * direction)) / 2e-6
    assert torch.allclose((potential().gradient(theta, generator()) * direction).sum(1), rise, rtol=1e-5)


def test_minibatch_gradients_average_to_the_full_gradient() -> None:
    weights = torch.rand(len(DATA), generator=generator(2)) + 0.5
    data, many = replace(DATA, weights=weights), 4000
    theta = rows(1).expand(many, -1)
    full = potential(data).gradient(theta[:1], generator())
    parts = potential(data, batch=5).gradient(theta, generator())
    error = parts.std(0) / many**0.5
    assert parts.std(0).max().item() > 0.1  # they do differ
    assert ((parts.mean(0) - full[0]).abs() <= 4.5 * error + 1e-9).all()


def test_the_value_does_not_depend_on_the_batch() -> None:
    assert torch.allclose(potential(batch=5).value(rows()), potential().value(rows()))


def test_the_prior_is_as_wide_as_fan_in_and_scale_say() -> None:
    convnet = network("convnet-d1w4", images(1).shape, 3)  # convolution 1x3x3 -> 4, norm, head 4x4x4 -> 3
    prior = Prior(convnet, 2.0)
    widths = [std.unique().tolist() for std in convnet.unflatten(prior.std).values()]
    means = [mean.unique().tolist() for mean in convnet.unflatten(prior.mean).values()]
    assert widths == [pytest.approx([2 / 3])] * 4 + [pytest.approx([2 / 8])] * 2
    assert means == [[0], [0], [1], [0], [0], [0]]  # the gain of the norm is around one


@pytest.mark.parametrize("name", ["mlp-d2w64", "mlp-d2w64-weightnorm"])
def test_networks_start_in_the_prior_of_their_own_initialisation(name: str) -> None:
    net, gen = network(name, (64,), 10), generator()
    z = Prior(net, 3**-0.5).whiten(torch.stack([net.init(gen) for _ in range(20)]))
    assert z.mean().abs().item() < 0.01
    assert z.var().item() == pytest.approx(1, rel=0.02)
    assert z.abs().max().item() < 4


def test_biases_and_lengths_of_normalised_weights_have_the_fan_in_of_their_layer() -> None:
    net = network("mlp-d2w16-weightnorm", (4,), 3)
    widths = {name: std.unique().tolist() for name, std in net.unflatten(Prior(net, 2.0).std).items()}
    assert [widths[f"body.{layer}.bias"] for layer in (1, 3)] == [[1.0], [0.5]]
    assert [widths["body.3." + part] for part in (LENGTH, DIRECTION)] == [[0.5], [0.5]]
    means = net.unflatten(Prior(net, 2.0).mean)
    assert {name for name, mean in means.items() if bool(mean.any())} == {f"body.{layer}.{LENGTH}" for layer in (1, 3)}
    assert means["body.1." + LENGTH].unique().tolist() == [2.0]


def test_whitening_and_back_is_nothing() -> None:
    assert torch.allclose(PRIOR.unwhiten(PRIOR.whiten(rows())), rows())


def test_a_draw_of_the_prior_is_standard_when_whitened() -> None:
    theta = PRIOR.unwhiten(torch.eye(NET.size).double())
    assert torch.allclose(PRIOR.minus_log(theta), torch.full((NET.size,), 0.5).double())


@pytest.mark.parametrize("examples", [1.0, 12.0])
def test_whitened_has_the_same_values_per_example_and_the_gradient_in_its_own_units(examples: float) -> None:
    theta = rows()
    z, white = PRIOR.whiten(theta), Whitened(potential(), PRIOR, examples)
    assert torch.allclose(white.value(z), potential().value(theta) / examples)
    direction = torch.randn(3, NET.size, generator=generator(1), dtype=torch.float64)
    rise = (white.value(z + 1e-6 * direction) - white.value(z - 1e-6 * direction)) / 2e-6
    assert torch.allclose((white.gradient(z, generator()) * direction).sum(1), rise, rtol=1e-5)


def test_walking_in_whitened_coordinates_leaves_the_distribution_as_it_was() -> None:
    # A skewed target over the parameters of a linear network, which its prior scales by 3/2.
    prior, shape = Prior(network("linear", (4,), 2), 3.0), torch.full((10,), 3.0).double()
    variance = torch.polygamma(1, shape)
    target = Target(
        lambda t: (t.exp() - shape * t).sum(-1),
        lambda t: t.exp() - shape,
        torch.digamma(shape),
        variance.sqrt(),
        torch.polygamma(2, shape) / variance**1.5,
    )
    gen = generator()
    sampler = HMC(step=0.3, leaps=5, warmup=100, thin=2, temperature=1 / 7)
    walked = sampler.run(Whitened(target, prior, 7), prior.whiten(target.start(100, gen)), 3000, gen)
    assert errors(target, prior.unwhiten(walked.theta)).abs().max().item() < 4
    assert errors(target, walked.theta).abs().max().item() > 8  # the whitened numbers themselves are others
