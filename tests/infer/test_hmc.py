from collections.abc import Callable

import pytest
import torch

from attar import Training
from attar.core.errors import AttarError
from attar.infer.diagnose import Chains
from attar.infer.hmc import HMC, Point, leapfrog
from attar.nets import network
from tests.infer.targets import Target, errors, gaussian, log_gamma, normal
from tests.known import gaussians, generator

CHAINS, DRAWS = 100, 100 * 30


def walk(sampler: HMC, target: Target, seed: int = 0, draws: int = DRAWS) -> Chains:
    gen = generator(seed)
    return sampler.run(target, target.start(CHAINS, gen), draws, gen)


@pytest.mark.parametrize("target", [gaussian(), log_gamma()])
def test_moments_are_those_of_the_target_up_to_monte_carlo_error(target: Target) -> None:
    walked = walk(HMC(step=0.1, leaps=5, warmup=100, thin=2, temperature=1), target)
    assert errors(target, walked.theta).abs().max().item() < 4


@pytest.mark.parametrize("make", [gaussian, log_gamma])
def test_temperature_widens_the_target(make: Callable[..., Target]) -> None:
    walked = walk(HMC(step=0.1, leaps=5, warmup=100, thin=2, temperature=2), make())
    assert errors(make(2), walked.theta).abs().max().item() < 4
    assert errors(make(), walked.theta).abs().max().item() > 8


def test_a_coarse_step_is_refused_more_often_but_leaves_no_bias() -> None:
    walked = walk(HMC(step=1.6, leaps=3, warmup=0, thin=4, temperature=1), log_gamma())
    assert walked.acceptance is not None
    assert walked.acceptance < 0.8
    assert errors(log_gamma(), walked.theta).abs().max().item() < 4


@pytest.mark.parametrize("target", [gaussian(), log_gamma()])
def test_leapfrog_runs_back_to_where_it_came_from(target: Target) -> None:
    gen = generator()
    theta = target.start(8, gen)
    r, step = torch.randn(theta.shape, generator=gen, dtype=torch.float64), torch.full((8, 1), 0.1).double()

    def gradient(t: torch.Tensor) -> torch.Tensor:
        return target.gradient(t, gen)

    there = leapfrog(gradient, Point(theta, gradient(theta), r), step, 20)
    back = leapfrog(gradient, there._replace(r=-there.r), step, 20)
    assert (there.theta - theta).abs().min().item() > 1e-3
    assert torch.allclose(back.theta, theta, atol=1e-9)
    assert torch.allclose(-back.r, r, atol=1e-9)
    assert torch.equal(there.slope, gradient(there.theta))


def test_the_energy_error_of_a_path_falls_with_the_square_of_the_step() -> None:
    target, gen = log_gamma(), generator()
    theta = target.start(200, gen)
    r = torch.randn(theta.shape, generator=gen, dtype=torch.float64)

    def error(step: float, leaps: int) -> float:
        start = Point(theta, target.gradient(theta, gen), r)
        end = leapfrog(lambda t: target.gradient(t, gen), start, theta.new_full((200, 1), step), leaps)
        change = target.value(end.theta) - target.value(theta) + (end.r.square() - r.square()).sum(1) / 2
        return change.abs().mean().item()

    assert error(0.05, 20) / error(0.025, 40) == pytest.approx(4, rel=0.1)
    assert error(0.025, 40) / error(0.0125, 80) == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize("step", [1e-3, 20.0])
@pytest.mark.parametrize("target", [0.65, 0.9])
def test_warm_up_finds_the_step_of_the_acceptance_asked_for(step: float, target: float) -> None:
    walked = walk(HMC(step=step, accept=target, leaps=3, warmup=300, thin=1, temperature=1), normal(100))
    assert walked.acceptance == pytest.approx(target, abs=0.07)


def test_the_step_changes_in_warm_up_only() -> None:
    # Started far too small, an adapted step moves; without warm-up it stays, and nearly everything is accepted.
    still = walk(HMC(step=1e-4, leaps=1, warmup=0, thin=1, temperature=1), gaussian(), draws=CHAINS * 20)
    assert still.acceptance == 1
    assert (still.theta[:, 0] - still.theta[:, -1]).abs().max().item() < 0.01


def test_where_the_numbers_end_a_chain_stays() -> None:
    one = torch.ones(1).double()
    exponential = Target(lambda t: t.where(t > 0, torch.nan).sum(-1), torch.ones_like, one, one, 2 * one)
    walked = HMC(step=0.3, leaps=3, warmup=0, thin=5, temperature=1).run(
        exponential, one.expand(CHAINS, 1), DRAWS, generator()
    )
    assert walked.acceptance is not None
    assert walked.acceptance < 0.95
    assert walked.theta.min().item() > 0
    assert errors(exponential, walked.theta[:, 10:]).abs().max().item() < 4


@pytest.mark.parametrize("training", [Training(batch=23), Training(augment="flip")])
def test_minibatches_and_augmentation_are_refused(training: Training) -> None:
    data = gaussians(8)
    with pytest.raises(AttarError, match="batch to at least 24 and its augment to none, or use sghmc"):
        HMC().infer(data, network("linear", data.shape, 3), training, 2, generator())
