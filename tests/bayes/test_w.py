"""Pseudo-coresets by the Wasserstein distance."""

from pathlib import Path

import torch

import attar
from attar import Training
from attar.bayes.w import BPCW
from attar.condense.contract import Task
from attar.condense.source import Pixels
from attar.condense.trajectory import looks
from attar.data import Data
from attar.experts import Schedule, Trajectories
from tests.bayes.small import DATA, NET, check_learns_from_experts
from tests.known import generator, images


def test_it_learns_from_the_experts_and_says_which(experts: Trajectories) -> None:
    loss = check_learns_from_experts(BPCW(net_steps=5), experts)
    assert float(loss.metrics["step_size"]) > 0


def test_the_step_size_is_learnt_and_kept(experts: Trajectories) -> None:
    coreset = attar.reduce(
        DATA,
        "bpc-w",
        per_class=1,
        network=NET.name,
        experts=experts,
        options={"net_steps": 5},
        descent={"steps": 20, "lr": 0.1, "scalar_lr": 0.1},
    )
    assert coreset.step_size is not None
    assert coreset.step_size > 0
    assert coreset.step_size != 0.1
    assert coreset.training.lr == coreset.step_size
    assert (coreset.training.momentum, coreset.training.schedule) == (0.0, "constant")


def test_the_distance_is_zero_where_the_full_data_is_trained_on_as_its_experts_were(tmp_path: Path) -> None:
    training = Training(batch=99, lr=0.1, momentum=0, weight_decay=0, schedule="constant")
    experts = attar.experts(DATA, NET, Schedule(1, 3, training), folder=tmp_path)
    task, method = Task(DATA, NET, DATA.classes, experts), BPCW(net_steps=3, ahead=3)
    (same, other) = (
        method.loss(Pixels(DATA, scalars={"step_size": size})(), method.init(task, generator()), task, generator())
        for size in (0.1, 0.2)
    )
    assert same.value.item() < 1e-8
    assert other.value.item() > 0.1


def test_every_image_of_a_step_has_its_own_augmentation_and_a_repeated_step_the_same() -> None:
    alike = Data(images(1).x[:1].expand(6, -1, -1, -1), torch.zeros(6, dtype=torch.long))
    first, second = looks("rotate", [None, None], generator())
    assert len(torch.unique(first(alike).x, dim=0)) == 6
    assert torch.equal(first(alike).x, first(alike).x)
    assert not torch.equal(first(alike).x, second(alike).x)
