"""Pseudo-coresets by the forward divergence."""

from pathlib import Path

import torch

import attar
from attar import Training
from attar.bayes.cd import contrast
from attar.bayes.energy import EnergyPotential, descend
from attar.bayes.fkl import BPCFKL
from attar.condense.contract import Task
from attar.condense.source import Pixels
from attar.data.noise import normal
from attar.experts import Schedule, Trajectories
from attar.nets.objective import Objective
from tests.bayes.small import DATA, NET, check_learns_from_experts
from tests.known import generator


def test_it_learns_from_the_experts_and_says_which(experts: Trajectories) -> None:
    check_learns_from_experts(BPCFKL(net_steps=5), experts)


def test_without_spread_it_contrasts_a_later_expert_with_where_the_examples_lead(experts: Trajectories) -> None:
    task, syn = Task(DATA, NET, DATA.classes, experts), DATA.sample_per_class(1, generator())
    method = BPCFKL(net_steps=3, step_size=0.05, ahead=2, max_epoch=None, sigma=0.0)
    loss = method.loss(syn, method.init(task, generator()), task, generator(1))
    _, start, target = experts.pair(generator(1), 2)
    energy = Objective(NET)
    reached = descend(EnergyPotential(energy, syn), start[None], 3, 0.05, generator())
    expected, _ = contrast(energy, syn, target[None], reached)
    assert torch.allclose(loss.value, expected, atol=1e-6)


def test_the_full_data_leads_where_its_experts_went_and_is_not_pulled(tmp_path: Path) -> None:
    # With all examples in one batch, an epoch of the experts is one step of the objective's own descent.
    training = Training(batch=99, lr=0.1, momentum=0, weight_decay=0, schedule="constant")
    experts = attar.experts(DATA, NET, Schedule(1, 2, training), folder=tmp_path)
    task, source = Task(DATA, NET, DATA.classes, experts), Pixels(DATA)
    method = BPCFKL(net_steps=2, step_size=0.1, ahead=2, sigma=0.0)
    loss = method.loss(source(), method.init(task, generator()), task, generator())
    loss.value.backward()
    assert source.x.grad is not None
    assert float(source.x.grad.abs().max()) < 1e-6
    assert abs(loss.value.item()) < 1e-5


def test_draws_are_averaged_and_so_are_their_gradients(experts: Trajectories) -> None:
    task, source = Task(DATA, NET, DATA.classes, experts), Pixels(DATA.sample_per_class(1, generator()))
    method = BPCFKL(net_steps=3, draws=4, sigma=0.1)
    loss = method.loss(source(), method.init(task, generator()), task, generator(1))
    (ours,) = torch.autograd.grad(loss.value, source.x)
    gen, energy, syn = generator(1), Objective(NET), source()
    _, start, target = experts.pair(gen, experts.early, method.max_epoch)
    reached = descend(EnergyPotential(energy, syn), start[None], 3, method.step_size, gen)
    plus, minus = zip(*[[c + 0.1 * normal(c, gen) for c in (target[None], reached)] for _ in range(4)], strict=True)
    expected, metrics = contrast(energy, syn, torch.cat(plus), torch.cat(minus))
    (theirs,) = torch.autograd.grad(expected, source.x)
    assert torch.allclose(loss.value, expected, atol=1e-6)
    assert torch.allclose(ours, theirs, atol=1e-6)
    assert torch.allclose(loss.metrics["negative"], metrics["negative"], atol=1e-6)


def test_the_default_is_the_published_descent_and_number_of_draws() -> None:
    method = BPCFKL()
    assert (method.draws, method.net_steps, method.step_size, method.sigma) == (30, 30, 0.03, 0.01)
