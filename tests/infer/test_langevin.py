from collections.abc import Callable

import pytest
import torch

from attar.infer.langevin import Langevin
from tests.infer.targets import Target, errors, gaussian, log_gamma, normal
from tests.known import generator

CHAINS, DRAWS = 250, 250 * 16


@pytest.mark.parametrize("target", [gaussian(), log_gamma()])
def test_moments_are_those_of_the_target_up_to_monte_carlo_error(target: Target) -> None:
    sampler, gen = Langevin(step=0.01, warmup=500, thin=50, temperature=1), generator()
    walked = sampler.run(target, target.start(CHAINS, gen), DRAWS, gen)
    assert errors(target, walked.theta).abs().max().item() < 4


@pytest.mark.parametrize("make", [gaussian, log_gamma])
def test_temperature_widens_the_target(make: Callable[..., Target]) -> None:
    sampler, gen = Langevin(step=0.01, warmup=500, thin=50, temperature=2), generator(1)
    walked = sampler.run(make(), make().start(CHAINS, gen), DRAWS, gen)
    assert errors(make(2), walked.theta).abs().max().item() < 4
    assert errors(make(), walked.theta).abs().max().item() > 8


def test_a_large_step_has_the_bias_of_its_equation() -> None:
    # For U = t^2 / 2 the recursion is an AR(1) with factor 1 - step/2, so its variance is 1 / (1 - step/4).
    walked = Langevin(step=1.0, warmup=50, thin=10, temperature=1).run(
        normal(), torch.zeros(500, 1).double(), 500 * 40, generator()
    )
    assert walked.theta.var().item() == pytest.approx(1 / (1 - 1 / 4), rel=0.04)
    assert walked.acceptance is None
