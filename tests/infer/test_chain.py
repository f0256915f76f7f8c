from __future__ import annotations

import json
import warnings
from typing import NamedTuple

import pytest
import torch
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

import attar
from attar.core.errors import Diverged
from attar.infer import Draws
from attar.infer.chain import Chain
from attar.infer.diagnose import MixingWarning
from attar.infer.hmc import HMC
from attar.infer.langevin import Langevin
from attar.infer.potential import NetworkPotential, Potential, Prior
from attar.infer.sghmc import SGHMC
from attar.nets import network
from attar.nets.train import Training
from tests.infer.targets import normal
from tests.known import gaussians, generator, images

DATA = gaussians(8)
NET = network("mlp-d1w5", DATA.shape, 3)


class Counted(NamedTuple):
    theta: Tensor
    number: int
    accepted: Tensor | None = None


@dataclass(frozen=True)
class Counting(Chain):
    """Every transition adds one, and every third is refused; from ``ends`` on, a chain is lost."""

    ends: int = 1000

    def init(self, potential: Potential, start: Tensor, gen: Generator) -> Counted:
        return Counted(start, 0)

    def update(self, state: Counted, potential: Potential, gen: Generator) -> Counted:
        theta, number = state.theta + 1, state.number + 1
        if number >= self.ends:
            theta = torch.cat([theta[:-1], theta[-1:] * torch.inf])
        return Counted(theta, number, torch.full((len(theta),), number % 3 != 0))


def test_draws_are_kept_after_warm_up_as_far_apart_as_thin_says() -> None:
    start = torch.tensor([[0.0], [100.0]]).double()
    walked = Counting(warmup=6, thin=3, temperature=1e6).run(normal(), start, 5, generator())
    assert walked.theta[..., 0].tolist() == [[9, 12, 15], [109, 112, 115]]  # 5 draws of 2 chains need 3 each
    assert walked.potential.tolist() == [[9**2 / 2, 12**2 / 2, 15**2 / 2], [109**2 / 2, 112**2 / 2, 115**2 / 2]]
    assert walked.acceptance == pytest.approx(2 / 3)
    assert walked.stopped is None


def test_a_chain_lost_after_some_draws_leaves_them_with_a_warning() -> None:
    with pytest.warns(MixingWarning, match=r"diverged at transition 8: try step=0\.25\. The 2 draws of each"):
        walked = Counting(step=1.0, warmup=1, thin=3, temperature=1e6, ends=8).run(
            normal(), torch.ones(2, 1).double(), 10, generator()
        )
    assert walked.theta.shape == (2, 2, 1)
    assert bool(torch.isfinite(walked.theta).all())
    assert walked.stopped is not None


def test_a_chain_lost_before_the_first_draw_is_an_error_that_names_a_step() -> None:
    with pytest.raises(Diverged, match=r"diverged at transition 3: try step=0\.25"):
        Counting(step=1.0, warmup=1, thin=3, temperature=1e6, ends=3).run(
            normal(), torch.ones(2, 1).double(), 10, generator()
        )


@pytest.mark.parametrize(
    "sampler",
    [
        Langevin(step=0.1, warmup=3, thin=2),
        SGHMC(step=0.1, warmup=3, thin=2, cyclical=True),
        HMC(step=0.1, warmup=3, thin=2, leaps=3),
    ],
)
def test_a_loop_of_ones_own_walks_as_a_run_does(sampler: Chain) -> None:
    potential, start, gen = normal(2), torch.ones(3, 2).double(), generator()
    state, states = sampler.init(potential, start, gen), []
    for _ in range(7):
        before = state.theta.clone()
        states.append(sampler.update(state, potential, gen))
        assert torch.equal(state.theta, before)  # a state stays as it was
        state = states[-1]
    walked = sampler.run(potential, start, 6, generator())
    assert torch.equal(walked.theta, torch.stack([states[4].theta, states[6].theta], 1))


@pytest.mark.parametrize("sampler", [Langevin(step=100.0), SGHMC(step=100.0)])
def test_a_step_beyond_stability_is_noticed(sampler: Chain) -> None:
    with pytest.raises(Diverged, match="try step=25"):
        sampler.run(normal(), torch.ones(2, 1), 10, generator())


def test_what_the_suggested_step_does_is_stable_in_the_end() -> None:
    step = 100.0
    for _ in range(10):
        try:
            Langevin(step=step).run(normal(), torch.ones(2, 1), 4, generator())
            break
        except Diverged as error:
            step = float(str(error).split("step=")[1].rstrip("."))
    assert step < 4  # the recursion t <- (1 - step/2) t is stable below


def test_chains_that_share_a_run_walk_as_each_would_with_the_same_noise() -> None:
    # The rows of a walk do not meet: what one chain does is unchanged when another starts elsewhere.
    start = torch.zeros(3, 2).double()
    moved = start.clone()
    moved[0] = 5
    one, two = (Langevin(step=0.1, warmup=5, thin=1).run(normal(2), s, 9, generator()).theta for s in (start, moved))
    assert torch.equal(one[1:], two[1:])
    assert not torch.equal(one[0], two[0])


def infer(sampler: Chain, draws: int, start: Tensor | None = None) -> Draws:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixingWarning)  # chains are too short to mix
        return sampler.infer(DATA, NET, Training(), draws, generator(), start)


def test_a_prefix_of_the_draws_holds_as_much_of_every_chain() -> None:
    sampler = Langevin(step=1e-6, chains=3, warmup=0, thin=1)
    drawn = infer(sampler, 7).theta
    gen = generator()
    first = torch.stack([NET.init(gen) for _ in range(3)])
    nearest = torch.cdist(drawn, first).argmin(1)
    assert nearest.tolist() == [0, 1, 2, 0, 1, 2, 0]  # steps this small stay near where each chain started


def test_chains_start_where_they_are_told_to() -> None:
    start = torch.full((2, NET.size), 0.25)
    drawn = infer(Langevin(step=1e-10, warmup=0, thin=1), 2, start).theta
    assert torch.allclose(drawn, start, atol=1e-2)


def test_the_traced_potential_is_that_of_the_draws_whatever_the_units_of_the_walk() -> None:
    sampler = Langevin(chains=2, warmup=3, thin=1, prior_scale=2.0, examples=50.0)
    posterior = infer(sampler, 4)
    exact = NetworkPotential(NET, DATA, Prior(NET, 2.0), examples=50.0).value(posterior.theta)
    assert torch.tensor(posterior.notes["trace"]["potential"]).T.flatten().tolist() == pytest.approx(exact.tolist())


@pytest.mark.parametrize("loss", ["squared", "multi-margin"])
def test_chains_walk_on_the_loss_of_the_training(loss: str) -> None:
    sampler, budget = Langevin(chains=2, warmup=3, thin=1, prior_scale=2.0), Training(loss=loss)
    with pytest.warns(MixingWarning, match="only 2 transitions"):
        posterior = sampler.infer(DATA, NET, budget, 4, generator())
    exact = NetworkPotential(NET, DATA, Prior(NET, 2.0), loss=loss).value(posterior.theta)
    other = NetworkPotential(NET, DATA, Prior(NET, 2.0)).value(posterior.theta)
    traced = torch.tensor(posterior.notes["trace"]["potential"]).T.flatten().tolist()
    assert traced == pytest.approx(exact.tolist())
    assert traced != pytest.approx(other.tolist())


def test_the_posterior_of_a_network_is_as_wide_as_its_prior_where_the_data_says_nothing() -> None:
    # An input that is always zero: its weights keep their prior, of variance T s² / fan-in.
    silent = DATA.map(lambda x: torch.cat([x, torch.zeros(len(x), 58)], 1))
    net = network("linear", silent.shape, 3)
    sampler = SGHMC(step=20.0, chains=30, warmup=100, thin=10, temperature=0.5, prior_scale=3.0, examples=40.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixingWarning)  # the other weights do not matter here
        posterior = sampler.infer(silent, net, Training(), 300, generator())
    weights = posterior.theta[:, : 3 * 64].unflatten(1, (3, 64))[..., 6:]
    assert weights.var().item() == pytest.approx(0.5 * 9 / 64, rel=0.03)


def test_no_more_chains_walk_than_draws_are_asked_for() -> None:
    notes = infer(Langevin(step=0.01, chains=4, warmup=3, thin=1), 2).notes
    assert len(notes["trace"]["potential"]) == 2


def test_draws_carry_their_diagnosis_and_the_scales_they_were_made_with() -> None:
    options = {"warmup": 50, "thin": 2, "temperature": 0.5, "examples": 100.0, "prior_scale": 2.0}
    with pytest.warns(MixingWarning):
        posterior = attar.infer(DATA, "langevin", draws=4, network="mlp-d1w5", options=options)
    assert isinstance(posterior, Draws)
    assert {key: posterior.notes["options"][key] for key in options} == options
    assert {"rhat", "ess", "points", "acceptance", "trace", "warnings"} <= posterior.notes.keys()
    assert posterior.notes["temperature"] == 0.5
    assert json.loads(json.dumps(dict(posterior.notes), allow_nan=False)) == posterior.notes


def test_mixing_is_judged_at_many_more_points_than_are_drawn() -> None:
    notes = infer(Langevin(step=0.01, warmup=5, thin=150), 5).notes  # two draws of each of four chains
    assert notes["points"] == 4 * 100
    assert notes["rhat"] is not None
    assert [len(chain) for chain in notes["trace"]["probability"][0]] == [100] * 4
    assert [len(chain) for chain in notes["trace"]["potential"]] == [2] * 4


def test_points_are_recorded_evenly_after_warm_up() -> None:
    sampler = Counting(warmup=4, thin=150, temperature=1e9)
    seen = sampler.run(normal(), torch.zeros(1, 1).double(), 2, generator(), lambda theta: theta).seen
    assert seen is not None
    assert seen[0, :, 0].tolist() == [4 + 3 * k for k in range(1, 101)]


def test_a_walk_far_above_its_start_is_unstable_even_while_it_is_finite() -> None:
    # A momentum that is hardly damped, with a step beyond the limit of 4 for this potential.
    sampler = SGHMC(step=4.2, friction=0.01, warmup=0, thin=40, temperature=1)
    with pytest.raises(Diverged, match=r"unstable.*try step=1\.05"):
        sampler.run(normal(3), torch.ones(2, 3).double(), 2, generator())


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("sampler", "kind"),
    [
        (SGHMC(), "features"),
        pytest.param(SGHMC(), "images", marks=SLOW),
        pytest.param(HMC(), "features", marks=SLOW),
        pytest.param(HMC(), "images", marks=SLOW),
        pytest.param(Langevin(), "features", marks=SLOW),
        pytest.param(Langevin(), "images", marks=SLOW),
    ],
)
def test_default_warm_up_and_thinning_mix_in_function_space(sampler: Chain, kind: str) -> None:
    data, name = (DATA, "mlp-d1w5") if kind == "features" else (images(8), "convnet-d1w4")
    posterior = sampler.infer(data, network(name, data.shape, 3), Training(), 5, generator())
    assert posterior.notes["rhat"] < 1.1
    assert posterior.notes["warnings"] == []
