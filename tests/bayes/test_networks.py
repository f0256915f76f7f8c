"""The pseudo-coreset methods on networks: energies, negative phases, experts."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

import attar
from attar import Training
from attar import experts as train_experts
from attar.bayes.cd import BPCCD, contrast
from attar.bayes.energy import EnergyPotential, NetworkEnergy, descend
from attar.bayes.fkl import BPCFKL
from attar.bayes.negative import NEGATIVES
from attar.bayes.rkl import BPCRKL, reverse
from attar.bayes.w import BPCW
from attar.condense.contract import Task
from attar.condense.source import Pixels
from attar.core.errors import AttarError
from attar.experts import Schedule, Trajectories
from attar.nets import network
from tests.known import gaussians, generator

DATA = gaussians(16)
NET = network("mlp-d1w8", DATA.shape, DATA.classes)
of_experts = pytest.mark.parametrize("name", ["bpc-cd", "bpc-fkl", "bpc-w"])


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> Trajectories:
    budget = Training(batch=16, lr=0.05, schedule="constant")
    return train_experts(DATA, NET, Schedule(3, 4, budget), folder=tmp_path_factory.mktemp("experts"))


def thetas(n: int = 3) -> torch.Tensor:
    return torch.stack([NET.init(generator(seed)) for seed in range(n)])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_energy_of_several_networks_is_that_of_each(reduction: str) -> None:
    found = NetworkEnergy(NET, "cross-entropy", reduction)(thetas(), DATA)  # type: ignore[arg-type]
    each = [cross_entropy(NET(theta, DATA.x), DATA.y, reduction=reduction) for theta in thetas()]
    assert torch.allclose(found, torch.stack(each))


def test_the_potential_is_the_energy_and_its_gradient() -> None:
    potential = EnergyPotential(NetworkEnergy(NET), DATA)
    at = thetas().requires_grad_()
    (slope,) = torch.autograd.grad(potential.energy(at, DATA).sum(), at)
    assert torch.allclose(potential.gradient(thetas(), generator()), slope)
    assert torch.allclose(potential.value(thetas()), potential.energy(thetas(), DATA))


@pytest.mark.parametrize("name", NEGATIVES)
def test_every_negative_phase_goes_down_and_leaves_its_start_alone(name: str) -> None:
    potential, start = EnergyPotential(NetworkEnergy(NET), DATA), thetas()
    end = NEGATIVES[name](potential, start, 40, 0.05, 1e-6, generator())
    assert torch.equal(start, thetas())
    assert not end.requires_grad
    assert bool((potential.value(end) < potential.value(start)).all())


def test_without_temperature_langevin_is_plain_descent() -> None:
    potential = EnergyPotential(NetworkEnergy(NET), DATA)
    walked = NEGATIVES["langevin"](potential, thetas(), 5, 0.1, 0.0, generator())
    assert torch.equal(walked, descend(potential, thetas(), 5, 0.1, generator()))


def test_the_contrast_pulls_images_towards_low_energy_at_plus_and_high_at_minus() -> None:
    energy, x = NetworkEnergy(NET), DATA.x[:4].clone().requires_grad_()
    syn = replace(DATA[:4], x=x)
    plus, minus = thetas(1), thetas(2)[1:]
    value, metrics = contrast(energy, syn, plus, minus)
    (slope,) = torch.autograd.grad(value, x)
    moved = replace(DATA[:4], x=(x - 0.01 * slope).detach())
    assert value.item() == pytest.approx((metrics["positive"] - metrics["negative"]).item())
    assert contrast(energy, moved, plus, minus)[0].item() < value.item()


def test_the_reverse_gradient_is_minus_the_covariance() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    slopes, gap = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([3.0, -1.0, 4.0])
    ours = slopes * x  # ∂ours/∂x = slopes
    (found,) = torch.autograd.grad(reverse(ours, gap + ours.detach()), x)
    covariance = ((slopes - slopes.mean()) * (gap - gap.mean())).sum() / 2
    assert torch.allclose(found, -covariance)


@of_experts
def test_it_learns_from_the_experts_and_says_which(name: str, experts: Trajectories) -> None:
    method = {"bpc-cd": BPCCD(k=5), "bpc-fkl": BPCFKL(net_steps=5), "bpc-w": BPCW(net_steps=5)}[name]
    task = Task(DATA, NET, DATA.classes, experts)
    source = Pixels(DATA.sample_per_class(1, generator()), scalars={"step_size": 0.02})
    loss = method.loss(source(), method.init(task, generator()), task, generator(1))
    loss.value.backward()
    assert source.x.grad is not None
    assert float(source.x.grad.norm()) > 0
    assert 0 <= int(loss.metrics["trajectory"]) < 3
    assert 0 <= int(loss.metrics["epoch"]) <= 4


def test_pairs_are_averaged(experts: Trajectories) -> None:
    task = Task(DATA, NET, DATA.classes, experts)
    syn = Pixels(DATA.sample_per_class(1, generator()))()
    method = BPCCD(k=3, pairs=4, sigma=0.0, step_size=0.01, max_epoch=None)
    many = method.loss(syn, method.init(task, generator()), task, generator(1))
    gen, plus = generator(1), []
    for _ in range(4):
        plus.append(experts.vector(*experts.draw(gen, 1)))
    energy = NetworkEnergy(NET)
    minus = descend(EnergyPotential(energy, syn), torch.stack(plus), 3, 0.01, generator())
    expected, _ = contrast(energy, syn, torch.stack(plus), minus)
    assert torch.allclose(many.value, expected, atol=1e-6)


def test_the_step_size_of_bpc_w_is_learnt_and_kept(experts: Trajectories) -> None:
    coreset = attar.reduce(
        DATA,
        "bpc-w",
        per_class=1,
        network=NET.name,
        experts=experts,
        options={"net_steps": 5},
        descent={"steps": 20, "lr": 0.1, "scalar_lr": 0.1},
    )
    assert coreset.step_size is not None
    assert coreset.step_size > 0
    assert coreset.step_size != 0.1
    assert coreset.training.lr == coreset.step_size
    assert (coreset.training.momentum, coreset.training.schedule) == (0.0, "constant")


@of_experts
def test_without_experts_the_error_names_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("ATTAR_EXPERTS", str(tmp_path))
    with pytest.raises(AttarError, match=r"attar experts gaussians --network mlp-d1w8.*takes about"):
        attar.reduce(DATA, name, per_class=1, network=NET.name)


@of_experts
def test_experts_of_another_network_or_data_are_refused(name: str, experts: Trajectories) -> None:
    with pytest.raises(AttarError, match="mlp-d1w8"):
        attar.reduce(DATA, name, per_class=1, network="mlp-d1w16", experts=experts)
    with pytest.raises(AttarError, match="fingerprint"):
        attar.reduce(gaussians(16, seed=1), name, per_class=1, network=NET.name, experts=experts)


@of_experts
def test_epochs_that_are_not_there_are_refused_before_a_step(name: str, experts: Trajectories) -> None:
    with pytest.raises(AttarError, match="epoch"):
        attar.reduce(DATA, name, per_class=1, network=NET.name, experts=experts, options={"max_epoch": 5})


def test_methods_without_experts_refuse_them(experts: Trajectories) -> None:
    for name in ("vbpc", "bpc-rkl", "dm", "uniform"):
        with pytest.raises(AttarError, match="uses no experts"):
            attar.reduce(DATA, name, per_class=1, network=NET.name, experts=experts)


def test_exploding_images_stop_the_run_with_a_remedy(experts: Trajectories) -> None:
    with pytest.raises(AttarError, match="learning rate below"):
        attar.reduce(DATA, "bpc-cd", per_class=1, network=NET.name, experts=experts, descent={"lr": 1e30, "steps": 9})


def test_bad_options_are_refused() -> None:
    for options, word in (
        ({"step_size": -1}, "step_size"),
        ({"k": 0}, "k"),
        ({"energy": "hinge"}, "loss"),
        ({"negative": "hmc"}, "temperature"),
    ):
        with pytest.raises(AttarError, match=word):
            attar.reduce(DATA, "bpc-cd", per_class=1, options=options)
    with pytest.raises(AttarError, match="ask for fewer"):
        attar.reduce(DATA, "bpc-rkl", per_class=17)


def test_the_reverse_method_trains_its_centre_and_renews_it() -> None:
    task, method = Task(DATA, NET, DATA.classes), BPCRKL(restart=2, net_steps=3, draws=4)
    source = Pixels(DATA.sample_per_class(1, generator()))
    state, gen, ages = method.init(task, generator()), generator(1), []
    for _ in range(5):
        state = method.loss(source(), state, task, gen).state
        ages.append(state.age)
    assert ages == [1, 2, 1, 2, 1]
