from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attar.core.errors import AttarError
from attar.data import Data
from attar.infer import Draws
from attar.infer.head import LastLayer
from attar.infer.last_layer_vi import LastLayerVI
from attar.nets import network
from attar.nets.train import Training, train
from attar.truth import Gaussian, LinearRegression, kl
from tests.known import Largest, gaussians, generator, images

RHO, BETA, GAMMA = 2.0, 0.5, 30.0
RIDGE = RHO * BETA / GAMMA


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


@pytest.mark.parametrize(("n", "h"), [(5, 12), (40, 7)])
def test_it_equals_exact_linear_regression_and_the_direct_formula(n: int, h: int) -> None:
    phi, y, new = numbers(n, h), numbers(n, 3, seed=1), numbers(4, h, seed=2)
    ours = LastLayer.fit(phi, y, RHO, RIDGE)
    direct = torch.linalg.inv(RHO * torch.eye(h).double() + GAMMA / BETA * phi.T @ phi)
    assert torch.allclose(ours.mean, GAMMA / BETA * direct @ phi.T @ y, atol=1e-8)
    assert torch.allclose(ours.variance(new), (new @ direct * new).sum(1), atol=1e-8)
    model = LinearRegression(Gaussian.standard(h, RHO**-0.5), (BETA / GAMMA) ** 0.5)
    for column in range(3):
        exact = model.posterior(Data(phi, y[:, column]))
        assert torch.allclose(ours.mean[:, column], exact.mean, atol=1e-8)
        assert torch.allclose(ours.variance(new), (new @ exact.covariance * new).sum(1), atol=1e-8)


def test_its_draws_have_its_mean_and_covariance() -> None:
    phi, y, gen = numbers(5, 4), numbers(5, 1).expand(5, 20_000), generator(3)  # one class, drawn many times
    draws = LastLayer.fit(phi, y, RHO, RIDGE).sample(gen).T
    model = LinearRegression(Gaussian.standard(4, RHO**-0.5), (BETA / GAMMA) ** 0.5)
    exact, drawn = model.posterior(Data(phi, y[:, 0])), Gaussian.of(draws)
    scale = exact.covariance.diagonal().sqrt()
    assert ((drawn.mean - exact.mean) / scale).abs().max() < 0.04
    assert ((drawn.covariance - exact.covariance) / scale / scale[:, None]).abs().max() < 0.05


def test_a_row_that_counts_four_times_is_a_row_four_times() -> None:
    phi, y = numbers(3, 6), numbers(3, 2, seed=1)
    counts = torch.tensor([4, 1, 1])
    root = counts.double().sqrt()[:, None]
    often = LastLayer.fit(phi.repeat_interleave(counts, 0), y.repeat_interleave(counts, 0), RHO, RIDGE)
    assert torch.allclose(LastLayer.fit(root * phi, root * y, RHO, RIDGE).mean, often.mean, atol=1e-10)


def test_no_tensor_is_as_large_as_features_squared() -> None:
    n, h = 500, 2048
    phi, y, gen = numbers(n, h) / h**0.5, numbers(n, 10, seed=1), generator()
    with Largest() as ours:
        fitted = LastLayer.fit(phi, y, 1.0, 0.01)
        assert fitted.sample(gen).shape == fitted.mean.shape == (h, 10)
        assert bool((fitted.variance(phi) > 0).all())
    assert n * n <= ours.numbers <= n * h
    with Largest() as direct:
        _ = phi.T @ phi
    assert direct.numbers == h * h


def test_a_whole_inference_makes_no_such_tensor_either() -> None:
    data, h = gaussians(4), 512
    net = network(f"mlp-d1w{h}", data.shape, data.classes)
    with Largest() as ours:
        LastLayerVI().infer(data, net, Training(steps=2), 1, generator())
    assert net.size <= ours.numbers < h * h / 16


def test_only_the_last_layer_changes_and_a_sure_one_fits_the_labels_times_the_scale() -> None:
    data, budget = gaussians(2), Training(steps=10)
    net = network("mlp-d1w64", data.shape, data.classes)
    draws = LastLayerVI(gamma=1e8, scale=7.0).infer(data, net, budget, 2, generator())
    trained, head = train(net, data, budget, generator(), 2), net.head_index().flatten()
    outside = torch.ones(net.size, dtype=torch.bool).index_fill(0, head, False)
    assert torch.equal(draws.theta[:, outside], trained[:, outside])
    assert not torch.equal(draws.theta[:, head], trained[:, head])
    targets = 7 * (torch.nn.functional.one_hot(data.y) - 1 / 3)
    for theta in draws.theta:
        assert torch.allclose(net(theta, data.x), targets, atol=0.05)


def test_soft_labels_equal_to_hard_ones_and_even_weights_change_nothing() -> None:
    data = gaussians(4)
    net = network("linear", data.shape, data.classes)
    soft = Data(data.x, torch.nn.functional.one_hot(data.y).float(), torch.full((len(data),), 3.0), data.spec)
    one, other = (LastLayerVI().infer(d, net, Training(steps=3), 2, generator()).theta for d in (data, soft))
    assert torch.allclose(one, other, atol=1e-5)


def test_the_divergence_from_the_prior_is_that_of_the_gaussians() -> None:
    phi, y = numbers(5, 8), numbers(5, 2, seed=1)
    fitted = LastLayer.fit(phi, y, RHO, RIDGE)
    covariance = torch.linalg.inv(RHO * torch.eye(8).double() + GAMMA / BETA * phi.T @ phi)
    prior = Gaussian.standard(8, RHO**-0.5)
    direct = sum(kl(Gaussian(fitted.mean[:, c], covariance), prior) for c in range(2))
    assert torch.allclose(fitted.kl(), torch.as_tensor(direct), atol=1e-8)


def test_averages_in_closed_form_are_those_of_many_draws() -> None:
    data = gaussians(3)
    net = network("mlp-d1w16", data.shape, data.classes)
    ours = LastLayerVI(gamma=4.0, scale=2.0).infer(data, net, Training(steps=20), 1, generator())
    closed, gen = ours.predict(data.x[:6]), generator(1)
    drawn = torch.stack([net(theta, data.x[:6]).softmax(1) for theta in ours.sample(4000, gen)]).double().mean(0)
    plain = net(ours.theta[0], data.x[:6]).softmax(1).double()
    assert (closed - drawn).abs().max() < 0.03  # mean field is an approximation
    assert (closed - drawn).abs().max() < (plain - drawn).abs().max() / 2


def test_a_file_keeps_the_gaussian_last_layers(tmp_path: Path) -> None:
    data = gaussians(3)
    net = network("mlp-d1w16", data.shape, data.classes)
    ours = LastLayerVI().infer(data, net, Training(steps=5), 2, generator())
    ours.save(tmp_path / "posterior.safetensors")
    again = Draws.load(tmp_path / "posterior.safetensors")
    assert torch.equal(again.predict(data.x), ours.predict(data.x))
    assert torch.equal(again.sample(2, generator()), ours.sample(2, generator()))
    assert ours.heads is not None
    replace(ours, heads=ours.heads._replace(phi=ours.heads.phi[:, :2])).save(tmp_path / "cut.safetensors")
    with pytest.raises(AttarError, match="last layers"):
        Draws.load(tmp_path / "cut.safetensors")


def test_more_rows_than_features_give_the_same_posterior_through_fewer() -> None:
    phi, y, new = numbers(40, 7), numbers(40, 3, seed=1), numbers(4, 7, seed=2)
    whole = LastLayer.fit(phi, y, RHO, RIDGE)
    few = LastLayer.of_many(zip(phi.split(9), y.split(9), strict=True), RHO, RIDGE)
    assert len(few.phi) == 7
    assert torch.allclose(few.mean, whole.mean, atol=1e-8)
    assert torch.allclose(few.variance(new), whole.variance(new), atol=1e-8)
    assert torch.allclose(few.kl(), whole.kl(), atol=1e-6)


def test_full_data_is_inferred_through_as_many_rows_as_features() -> None:
    data = gaussians(40)
    net = network("mlp-d1w16", data.shape, data.classes)
    ours = LastLayerVI().infer(data, net, Training(steps=20), 1, generator())
    assert ours.heads is not None
    assert ours.heads.phi.shape == (1, 17, 17)
    assert float((ours.predict(data.x).argmax(1) == data.y).float().mean()) > 0.9


def test_with_flips_the_last_layer_is_fitted_to_mirror_images_too() -> None:
    data, net, budget = images(2), network("convnet-d1w4", (1, 8, 8), 3), Training(steps=3)
    both = Data(torch.cat([data.x, data.x.flip(3)]), torch.cat([data.y, data.y]), spec=data.spec)
    ours = LastLayerVI(flips=True).infer(data, net, budget, 1, generator())
    theta = train(net, data, budget, generator())
    by_hand = LastLayerVI().infer(both, net, replace(budget, lr=1e-12), 1, generator(), theta)
    assert ours.heads is not None
    assert by_hand.heads is not None
    assert torch.allclose(ours.heads.phi, by_hand.heads.phi, atol=1e-6)
    assert torch.equal(ours.heads.targets, by_hand.heads.targets)
    with pytest.raises(AttarError, match="Only images can be mirrored"):
        LastLayerVI(flips=True).infer(gaussians(2), network("mlp-d1w4", (6,), 3), budget, 1, generator())


def test_with_an_average_the_features_are_those_of_the_mean_parameters() -> None:
    data, net, budget = gaussians(4), network("mlp-d1w4", (6,), 3), Training(steps=5)
    ours = LastLayerVI(average=0.5).infer(data, net, budget, 2, generator())
    mean = train(net, data, budget, generator(), 2, average=0.5)
    head = net.head_index()
    body = torch.ones(net.size, dtype=torch.bool)
    body[head] = False
    assert torch.equal(ours.theta[:, body], mean[:, body])
    assert not torch.allclose(mean, train(net, data, budget, generator(), 2))
