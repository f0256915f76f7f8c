"""Coresets of several stages as one memory."""

from dataclasses import replace
from math import sqrt

import torch

import attar
from attar.continual.memory import joined, united
from attar.continual.stages import by_class
from attar.coreset import Coreset
from tests.continual.sets import split

STAGES = by_class(split(), 2, order=0)


def made(stage: int, method: str = "uniform") -> Coreset:
    return attar.reduce(STAGES[stage], method, per_class=2, network="linear")


def test_the_memory_has_the_classes_of_all_stages_in_their_order() -> None:
    memory = joined([made(0), made(1)])
    assert memory.data.spec.target.names == STAGES[0].spec.target.names + STAGES[1].spec.target.names
    assert torch.bincount(memory.data.hard).tolist() == [2, 2, 2, 2]
    assert torch.equal(memory.data.x[:4], made(0).data.x)


def test_numbers_learnt_in_each_stage_are_averaged() -> None:
    sizes = [replace(made(stage), step_size=size) for stage, size in ((0, 0.1), (1, 0.4))]
    assert joined(sizes).step_size is not None
    assert abs((joined(sizes).step_size or 0) - sqrt(0.04)) < 1e-12
    scaled = [
        replace(part, recipe=replace(part.recipe, sampler="last-layer-vi", sampler_options={"scale": scale}))
        for part, scale in ((made(0), 4.0), (made(1), 6.0))
    ]
    assert joined(scaled).recipe.sampler_options == {"scale": 5.0}


def test_steps_learnt_for_one_stage_are_not_used_for_several() -> None:
    parts = [replace(part, recipe=replace(part.recipe, sampler="unrolled")) for part in (made(0), made(1))]
    assert joined(parts).recipe.sampler == "ensemble"


def test_labels_learnt_for_another_loss_become_hard_beside_real_data() -> None:
    soft = replace(made(0), data=replace(made(0).data, y=torch.tensor([[0.9, -0.2]] * 2 + [[0.1, 0.6]] * 2)))
    other = replace(soft, recipe=replace(soft.recipe, training=replace(soft.recipe.training, loss="squared")))
    assert united([other], STAGES[1].train, "cross-entropy").y[:4].tolist() == [0, 0, 1, 1]
    kept = united([soft], STAGES[1].train, "cross-entropy").y[0]
    assert torch.allclose(kept, torch.tensor([0.9, -0.2, 0, 0]))
