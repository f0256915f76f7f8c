"""The negative phase: samples from the posterior of the synthetic examples, near the start of a chain."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from math import sqrt

from torch import Generator, Tensor

from attar.bayes.energy import EnergyPotential, descend
from attar.data.noise import normal
from attar.infer.chain import Chain
from attar.infer.curvature import Mode, kron
from attar.infer.langevin import Langevin
from attar.infer.potential import Prior
from attar.infer.sghmc import SGHMC
from attar.nets.objective import Objective

FRICTION = 0.1  #: of the Hamiltonian dynamics
PRECISION = 100.0  #: prior precision of a Laplace draw, in units of its per-layer standard deviations


def langevin(
    potential: EnergyPotential, theta: Tensor, steps: int, step_size: float, temperature: float, gen: Generator
) -> Tensor:
    r"""K steps of Langevin dynamics from every row, without a graph.

    .. math:: \theta \leftarrow \theta - \lambda \nabla_\theta E(\tilde x, \theta) + \sqrt{2 \lambda T}\, \eta
    """
    if temperature == 0:
        return descend(potential, theta, steps, step_size, gen)
    return _walked(Langevin(step=2 * step_size, warmup=0, temperature=temperature), potential, theta, steps, gen)


def hmc(
    potential: EnergyPotential, theta: Tensor, steps: int, step_size: float, temperature: float, gen: Generator
) -> Tensor:
    r"""K steps of stochastic gradient Hamiltonian dynamics from every row (Chen, Fox & Guestrin, ICML 2014).

    A gradient that stays the same moves parameters by :math:`\lambda` times it in each step, as in ``langevin``. No
    proposal is rejected: the examples are augmented anew for every gradient, so the energy is not conserved.
    """
    walker = SGHMC(step=FRICTION * step_size, warmup=0, friction=FRICTION, temperature=temperature)
    return _walked(walker, potential, theta, steps, gen)


def _walked(walker: Chain, potential: EnergyPotential, theta: Tensor, moves: int, gen: Generator) -> Tensor:
    """Where chains are after so many transitions."""
    return next(islice(walker.transitions(potential, theta, gen), moves - 1, None)).theta


def kfac_laplace(
    potential: EnergyPotential, theta: Tensor, steps: int, step_size: float, temperature: float, gen: Generator
) -> Tensor:
    """A draw from the Kronecker-factored Laplace approximation after k steps of gradient descent, for every row."""
    assert isinstance(potential.energy, Objective), "the curvature is that of a network"
    network, x = potential.energy.network, potential.data.x
    std = Prior(network).std.to(theta.device)
    drawn = descend(potential, theta, steps, step_size, gen)
    for row in drawn:
        for block in kron(Mode(network, row.clone(), x, x.new_ones(len(x)), std)):
            white = normal(block.values[None], gen)
            spread = sqrt(temperature) * block.colour(white, PRECISION)[0] * std[block.index]
            row[block.index] += spread.to(row)
    return drawn


Negative = Callable[[EnergyPotential, Tensor, int, float, float, Generator], Tensor]
NEGATIVES: dict[str, Negative] = {"langevin": langevin, "hmc": hmc, "kfac-laplace": kfac_laplace}
