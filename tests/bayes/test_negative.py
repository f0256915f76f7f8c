"""Negative phases: walks on the energy of the examples."""

import pytest
import torch

from attar.bayes.energy import EnergyPotential, descend
from attar.bayes.negative import NEGATIVES
from attar.nets.objective import Objective
from tests.bayes.small import DATA, NET, thetas
from tests.known import generator


@pytest.mark.parametrize("name", NEGATIVES)
def test_every_negative_phase_goes_down_and_leaves_its_start_alone(name: str) -> None:
    potential, start = EnergyPotential(Objective(NET), DATA), thetas()
    end = NEGATIVES[name](potential, start, 40, 0.05, 1e-6, generator())
    assert torch.equal(start, thetas())
    assert not end.requires_grad
    assert bool((potential.value(end) < potential.value(start)).all())


def test_without_temperature_langevin_is_plain_descent() -> None:
    potential = EnergyPotential(Objective(NET), DATA)
    walked = NEGATIVES["langevin"](potential, thetas(), 5, 0.1, 0.0, generator())
    assert torch.equal(walked, descend(potential, thetas(), 5, 0.1, generator()))
