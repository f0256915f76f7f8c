"""Energies of examples under networks, and the potential that chains walk on."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from attar.bayes.energy import EnergyPotential
from attar.data import Data
from attar.nets.objective import Objective
from tests.bayes.small import DATA, NET, thetas
from tests.known import generator, images


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_energy_of_several_networks_is_that_of_each(reduction: str) -> None:
    found = Objective(NET, "cross-entropy", reduction).value(thetas(), DATA)  # type: ignore[arg-type]
    each = [cross_entropy(NET(theta, DATA.x), DATA.y, reduction=reduction) for theta in thetas()]
    assert torch.allclose(found, torch.stack(each))


def test_the_potential_is_the_energy_and_its_gradient() -> None:
    potential = EnergyPotential(Objective(NET), DATA)
    at = thetas().requires_grad_()
    (slope,) = torch.autograd.grad(potential.energy.value(at, DATA).sum(), at)
    assert torch.allclose(potential.gradient(thetas(), generator()), slope)
    assert torch.allclose(potential.value(thetas()), potential.energy.value(thetas(), DATA))


def test_every_image_has_its_own_augmentation() -> None:
    alike = Data(images(1).x[:1].expand(6, -1, -1, -1), torch.zeros(6, dtype=torch.long))
    (seen,) = EnergyPotential(Objective(NET), alike, "rotate").batches(1, generator())
    assert len(torch.unique(seen.x, dim=0)) == 6
