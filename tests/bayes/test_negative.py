"""Negative phases: walks on the energy of the examples."""

import pytest
import torch

from attar.bayes.energy import EnergyPotential, descend
from attar.bayes.negative import FRICTION, NEGATIVES
from attar.nets import network as build
from attar.nets.objective import Objective
from tests.bayes.small import DATA, NET, thetas
from tests.known import digits, generator


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


@pytest.mark.parametrize("name", NEGATIVES)
def test_every_negative_phase_moves_where_each_gradient_has_its_own_augmentation(name: str) -> None:
    split = digits()
    syn = split.train.take(torch.arange(20))
    network = build("convnet-d2w8", split.spec)
    potential = EnergyPotential(Objective(network), syn, "crop-scale-rotate")
    start = descend(potential, torch.stack([network.init(generator(seed)) for seed in range(3)]), 40, 0.1, generator())
    end = NEGATIVES[name](potential, start, 20, 0.1, 1e-6, generator())
    assert bool(((end - start).norm(dim=1) > 0.1).all())
    assert bool((potential.value(end) < potential.value(start)).all())


def test_hamiltonian_dynamics_without_noise_are_descent_with_momentum() -> None:
    potential, steps, size = EnergyPotential(Objective(NET), DATA), 3, 0.05
    walked = NEGATIVES["hmc"](potential, thetas(), steps, size, 1e-20, generator())
    theta, r, half = thetas(), torch.zeros_like(thetas()), (FRICTION * size) ** 0.5 / 2
    for _ in range(steps):
        r = r - 2 * half * potential.gradient(theta, generator())
        theta = theta + half * r
        r = (1 - FRICTION) * r
        theta = theta + half * r
    torch.testing.assert_close(walked, theta)
