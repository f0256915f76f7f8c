from collections.abc import Callable

import pytest
import torch
from torch import Generator, Tensor

from attar.infer.sghmc import SGHMC
from tests.infer.targets import Target, errors, gaussian, log_gamma, normal
from tests.known import generator

CHAINS, DRAWS = 250, 250 * 16


@pytest.mark.parametrize("friction", [0.05, 0.5])
@pytest.mark.parametrize("target", [gaussian(), log_gamma()])
def test_moments_are_those_of_the_target_up_to_monte_carlo_error(target: Target, friction: float) -> None:
    sampler, gen = SGHMC(step=0.02, friction=friction, warmup=300, thin=25, temperature=1), generator()
    walked = sampler.run(target, target.start(CHAINS, gen), DRAWS, gen)
    assert errors(target, walked.theta).abs().max().item() < 4


@pytest.mark.parametrize("make", [gaussian, log_gamma])
def test_temperature_widens_the_target(make: Callable[..., Target]) -> None:
    sampler, gen = SGHMC(step=0.02, warmup=300, thin=25, temperature=2), generator(1)
    walked = sampler.run(make(), make().start(CHAINS, gen), DRAWS, gen)
    assert errors(make(2), walked.theta).abs().max().item() < 4
    assert errors(make(), walked.theta).abs().max().item() > 8


@pytest.mark.parametrize("friction", [0.1, 0.5, 1.0])
def test_a_gaussian_is_exact_at_any_stable_step(friction: float) -> None:
    sampler, gen = SGHMC(step=1.0, friction=friction, warmup=100, thin=10, temperature=1), generator()
    target = normal()
    walked = sampler.run(target, target.start(CHAINS, gen), DRAWS, gen)
    assert errors(target, walked.theta).abs().max().item() < 4


def test_cycles_keep_the_target() -> None:
    target, gen = log_gamma(), generator(2)
    sampler = SGHMC(step=0.05, cyclical=True, warmup=300, thin=30, temperature=1)
    walked = sampler.run(target, target.start(CHAINS, gen), DRAWS, gen)
    assert errors(target, walked.theta).abs().max().item() < 4


@pytest.mark.parametrize("warmup", [0, 3, 10])
def test_draws_are_kept_where_a_cycle_ends(warmup: int) -> None:
    moves: list[Tensor] = []

    class Flat:
        """Nothing pulls, so a transition is as long as its step lets it be."""

        def value(self, theta: Tensor) -> Tensor:
            return theta.sum(1)

        def gradient(self, theta: Tensor, gen: Generator) -> Tensor:
            moves.append(theta)
            return torch.zeros_like(theta)

    sampler = SGHMC(step=1.0, friction=1, cyclical=True, warmup=warmup, thin=10, temperature=1)
    walked = sampler.run(Flat(), torch.zeros(1, 20_000), 2, generator())
    path = torch.cat([*moves, walked.theta[:, -1]])
    lengths = path.diff(dim=0).square().mean(1)  # two fresh momenta, each over half of sqrt(step)
    phases = (torch.arange(len(lengths)) - warmup) % 10 / 10
    grown = ((torch.arange(len(lengths)) + 1) / (warmup + 1)).clamp(max=1).square()  # the step grows during warm-up
    assert torch.allclose(lengths, grown * (1 + (torch.pi * phases).cos()) / 2 / 2, rtol=0.05)
    assert torch.equal(walked.theta[0, 0], path[warmup + 10])
