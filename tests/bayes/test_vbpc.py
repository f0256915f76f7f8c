"""The variational pseudo-coreset: its objective against the direct formula, its pool, and inference with it."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import attar
from attar.bayes.vbpc import VBPC
from attar.condense.contract import Task
from attar.condense.source import Pixels
from attar.core.errors import AttarError
from attar.data import Data
from attar.infer.head import mean_field, units
from attar.nets.losses import targets
from attar.truth import Gaussian, kl
from tests.known import Largest, gaussian_task, gaussians, generator

METHOD = VBPC(batch=16, pool=2, rho=3.0, gamma=40.0, beta_s=0.5, beta_d=2.0)


def task(width: int = 24) -> Task:
    return gaussian_task(network=f"mlp-d1w{width}")


def direct(source: Pixels, theta: Tensor, given: Task, real: Data) -> Tensor:
    """The objective over all real examples with the covariance as a matrix, in float64."""
    syn, net = source(), given.network
    width = units(net)

    def phi(x: Tensor) -> Tensor:
        features = net.features(theta, x).double()
        return torch.cat([features, torch.ones(len(features), 1).double()], 1) * width

    ours, seen = phi(syn.x), phi(real.x)
    sharp = METHOD.gamma / METHOD.beta_s
    covariance = torch.linalg.inv(METHOD.rho * torch.eye(ours.shape[1]).double() + sharp * ours.T @ ours)
    mean = sharp * covariance @ ours.T @ targets(syn.y, given.classes).double()
    scale = syn.scalars["scale"]
    variance = scale**2 * (seen @ covariance * seen).sum(1)
    logits = scale * (seen @ mean) / (1 + torch.pi / 8 * variance).sqrt()[:, None]
    prior = Gaussian.standard(len(covariance), METHOD.rho**-0.5)
    divergence = torch.stack([kl(Gaussian(column, covariance), prior) for column in mean.T]).sum()
    return cross_entropy(logits, real.y) + METHOD.beta_d * divergence / len(given.data)


def test_the_objective_is_the_direct_formula_and_its_gradient_that_of_all_data() -> None:
    given = task()
    source = Pixels(given.data.sample_per_class(2, generator(1)), labels="targets", scalars={"scale": 3.0})
    state = METHOD.init(given, generator())
    state = state._replace(theta=state.theta[:1].repeat(2, 1))  # whichever network is drawn, it is this one
    gen, values = generator(2), []
    for _ in range(40):
        values.append(METHOD.loss(source(), state, given, gen).value)
    ours = torch.autograd.grad(torch.stack(values).mean(), list(source.parameters()))
    whole = direct(source, state.theta[0], given, given.data)
    exact = torch.autograd.grad(whole, list(source.parameters()))
    assert torch.stack(values).mean().item() == pytest.approx(whole.item(), rel=0.05)
    for mine, theirs in zip(ours, exact, strict=True):
        assert torch.cosine_similarity(mine.flatten(), theirs.flatten(), 0) > 0.95


def test_no_tensor_of_features_squared_is_made() -> None:
    given = task(width=512)
    source = Pixels(given.data.sample_per_class(2, generator(1)), labels="targets", scalars={"scale": 3.0})
    method = VBPC(batch=8, pool=1)
    state = method.init(given, generator())
    with Largest() as made:
        method.loss(source(), state, given, generator()).value.backward()
    assert given.network.size <= made.numbers < 512 * 512 / 16


def test_one_network_of_the_pool_is_trained_a_step_and_drawn_anew_when_its_time_is_up() -> None:
    given, method = task(), VBPC(batch=8, pool=3, net_steps=3)
    source = Pixels(given.data.sample_per_class(2, generator(1)), labels="targets", scalars={"scale": 3.0})
    state, gen = method.init(given, generator()), generator(5)
    ages = []
    for _ in range(30):
        before = state
        state = method.loss(source(), state, given, gen).state
        changed = (state.theta != before.theta).any(1)
        assert int(changed.sum()) == 1
        row = int(changed.nonzero())
        ages.append(int(state.steps[row]))
        assert ages[-1] in (int(before.steps[row]) + 1, 0)
    assert max(ages) == 2
    assert min(ages) == 0


def test_a_step_of_the_pool_is_a_step_of_adam() -> None:
    given, method = task(), VBPC(batch=8, pool=1, net_lr=0.01)
    source = Pixels(given.data.sample_per_class(2, generator(1)), labels="targets", scalars={"scale": 3.0})
    state, gen = method.init(given, generator()), generator(5)
    theta = state.theta[0].clone().requires_grad_()
    optimiser = torch.optim.Adam([theta], 0.01)
    syn = source()
    for _ in range(4):
        state = method.loss(source(), state, given, gen).state
        optimiser.zero_grad()
        aim = targets(syn.y, 3).detach()
        ((given.network(theta, syn.x.detach()) - aim).square().sum(1).mean() / 2).backward()
        optimiser.step()
    assert torch.allclose(state.theta[0], theta.detach(), atol=1e-5)


def test_mean_field_is_the_softmax_where_nothing_is_unsure_and_flatter_elsewhere() -> None:
    mean = torch.tensor([[2.0, 0.0], [2.0, 0.0]])
    sure, unsure = mean_field(mean, torch.tensor([0.0, 9.0])).softmax(1)[:, 0]
    assert torch.allclose(sure, mean.softmax(1)[0, 0])
    assert 0.5 < unsure < sure


def test_its_coreset_says_how_to_infer_and_inference_does_so(tmp_path: Path) -> None:
    data = gaussians(20)
    coreset = attar.reduce(data, "vbpc", per_class=1, network="mlp-d1w16", options={"batch": 16}, descent={"steps": 60})
    recipe = coreset.recipe
    assert (recipe.sampler, recipe.training.loss, recipe.training.optimiser) == ("last-layer-vi", "squared", "adam")
    assert recipe.sampler_options["scale"] != 10.0  # it was learnt
    coreset.save(tmp_path / "c.safetensors")
    posterior = attar.infer(attar.Coreset.load(tmp_path / "c.safetensors"), draws=2)
    assert posterior.notes["sampler"] == "last-layer-vi"
    assert recipe.sampler_options.items() <= posterior.notes["options"].items()
    assert attar.evaluate(posterior, gaussians(20, seed=1)).accuracy > 0.95


def test_a_network_without_features_is_refused() -> None:
    data = gaussians(8)

    def build() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 3), nn.Tanh())

    with pytest.raises(AttarError, match="last layer"):
        attar.reduce(data, "vbpc", per_class=1, network=build, descent={"steps": 1})
