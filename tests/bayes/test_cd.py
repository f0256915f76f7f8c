"""Pseudo-coresets by contrastive divergence."""

from dataclasses import replace

import pytest
import torch

import attar
from attar.bayes.cd import BPCCD, contrast
from attar.bayes.energy import EnergyPotential, descend
from attar.condense.contract import Task
from attar.condense.source import Pixels
from attar.core.errors import AttarError
from attar.experts import Trajectories
from attar.nets.objective import Objective
from tests.bayes.small import DATA, NET, check_learns_from_experts, thetas
from tests.known import generator


def test_the_contrast_pulls_images_towards_low_energy_at_plus_and_high_at_minus() -> None:
    energy, x = Objective(NET), DATA.x[:4].clone().requires_grad_()
    syn = replace(DATA[:4], x=x)
    plus, minus = thetas(1), thetas(2)[1:]
    value, metrics = contrast(energy, syn, plus, minus)
    (slope,) = torch.autograd.grad(value, x)
    moved = replace(DATA[:4], x=(x - 0.01 * slope).detach())
    assert value.item() == pytest.approx((metrics["positive"] - metrics["negative"]).item())
    assert contrast(energy, moved, plus, minus)[0].item() < value.item()


def test_it_learns_from_the_experts_and_says_which(experts: Trajectories) -> None:
    check_learns_from_experts(BPCCD(k=5), experts)


@pytest.mark.parametrize("given", [(None, None), (1, None), (0, 1)])
def test_it_starts_early_unless_other_epochs_are_asked_for(
    given: tuple[float | None, float | None], experts: Trajectories
) -> None:
    first, last = (experts.early, experts.early) if given == (None, None) else given
    method, gen = BPCCD(min_epoch=given[0], max_epoch=given[1]), generator()
    seen = {method._place(experts, gen)[1] for _ in range(200)}
    assert seen == {time for time in experts.times if first <= time <= (last or experts.epochs)}
    assert 0 < experts.early <= experts.epochs


def test_pairs_are_averaged(experts: Trajectories) -> None:
    task = Task(DATA, NET, DATA.classes, experts)
    syn = Pixels(DATA.sample_per_class(1, generator()))()
    method = BPCCD(k=3, pairs=4, sigma=0.0, step_size=0.01, min_epoch=1, max_epoch=None)
    many = method.loss(syn, method.init(task, generator()), task, generator(1))
    gen, plus = generator(1), []
    for _ in range(4):
        plus.append(experts.vector(*experts.draw(gen, 1)))
    energy = Objective(NET)
    minus = descend(EnergyPotential(energy, syn), torch.stack(plus), 3, 0.01, generator())
    expected, _ = contrast(energy, syn, torch.stack(plus), minus)
    assert torch.allclose(many.value, expected, atol=1e-6)


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
