"""Trainings and chains that workers share out: the bits of one process, whatever the number of workers."""

import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Generator

import attar
from attar.data import Data
from attar.engine import Engine
from attar.infer import Draws
from attar.infer.chain import Walked
from attar.infer.divide import divided, dividing, is_small
from attar.nets.members import mine
from tests.known import digits, generator

NETWORK = "convnet-d1w32"
TRAINING = attar.Training(steps=3, batch=150, augment="crop-flip")
EXACT = replace(TRAINING, batch=200, augment="none")
SAMPLERS: dict[str, tuple[dict[str, Any], attar.Training]] = {
    "ensemble": ({}, TRAINING),
    "last-layer-vi": ({"average": 0.5}, TRAINING),
    "swag": ({"modes": 3, "iterates": 2, "every": 1}, TRAINING),
    "sghmc": ({"chains": 3, "warmup": 2, "thin": 2, "step": 1e-3}, TRAINING),
    "langevin": ({"chains": 3, "warmup": 2, "thin": 2, "step": 1e-3}, TRAINING),
    "hmc": ({"chains": 3, "warmup": 2, "thin": 2, "leaps": 2, "step": 1e-3}, EXACT),
}
quiet = pytest.mark.filterwarnings("ignore::attar.infer.diagnose.MixingWarning")


def some() -> Data:
    return digits().train[:200]


def inferred(sampler: str, workers: int) -> Draws:
    options, training = SAMPLERS[sampler]
    engine = Engine(workers=workers, cpus_per_job=1)
    return attar.infer(some(), sampler, draws=5, network=NETWORK, training=training, options=options, engine=engine)


def require_same(one: Draws, two: Draws) -> None:
    assert torch.equal(one.theta, two.theta)
    assert one.notes == two.notes
    for ours, theirs in zip(one.heads or (), two.heads or (), strict=True):
        assert torch.equal(ours, theirs)


def by_turns(work: Any, shared: Any, jobs: Any, engine: Engine) -> Iterator[tuple[Any, Any]]:
    """What workers do, one after the other in this process, the last one first."""
    assert engine.workers == len(jobs)
    for job in reversed(jobs):
        yield job, work(pickle.loads(pickle.dumps(shared)), job)


@quiet
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_shares_of_all_samplers_make_up_the_bits_of_one_process(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("attar.infer.divide"), "run_all", by_turns)
    require_same(inferred(sampler, 1), inferred(sampler, 2))


@quiet
@pytest.mark.parametrize("sampler", ["swag", "hmc"])
def test_two_processes_give_the_bits_of_one(sampler: str) -> None:
    require_same(inferred(sampler, 1), inferred(sampler, 2))


def where(given: int, gen: Generator) -> tuple[int, list[int], float]:
    rows = list(range(given))[mine(given)]
    return os.getpid(), rows, float(torch.rand((), generator=gen))


@pytest.mark.parametrize(("small", "expected"), [(False, [[0], [1, 2]]), (True, [[0, 1, 2]])])
def test_members_are_shared_out_and_draw_the_same_numbers(small: bool, expected: list[list[int]]) -> None:
    gen, other = generator(), generator()
    with dividing(Engine(workers=2)):
        found = divided(where, 3, 3, gen, small=small)
    assert [rows for _, rows, _ in found] == expected
    assert {number for *_, number in found} == {float(torch.rand((), generator=other))}
    assert (os.getpid() in {process for process, *_ in found}) == small
    assert torch.equal(gen.get_state(), other.get_state())


def threads(given: None, gen: Generator) -> int:
    return torch.get_num_threads()


@pytest.mark.parametrize("small", [False, True])
def test_one_process_has_the_threads_that_are_asked_for(small: bool) -> None:
    before = torch.get_num_threads()
    with dividing(Engine(cpus_per_job=before + 1)):
        assert divided(threads, None, 2, generator(), small=small) == [before + 1]
    assert torch.get_num_threads() == before


def test_only_networks_that_are_computed_at_once_are_small() -> None:
    data = some()
    found = [is_small(attar.network(name, data.spec), data, TRAINING) for name in ("mlp-d1w8", NETWORK)]
    assert found == [True, False]


def test_chains_of_all_workers_end_where_the_first_diverged() -> None:
    long = Walked(torch.zeros(1, 5, 2), torch.zeros(1, 9, 3), torch.ones(1, 20, dtype=torch.bool), None)
    short = Walked(torch.ones(2, 2, 2), torch.ones(2, 4, 3), torch.ones(2, 8, dtype=torch.bool), 12)
    joined = Walked.joined([long, short, short._replace(stopped=14)])
    assert [None if x is None else tuple(x.shape) for x in joined[:3]] == [(5, 2, 2), (5, 4, 3), (5, 8)]
    assert joined.stopped == 12
    assert joined.kept is not None
    assert joined.kept[:, 0, 0].tolist() == [0, 1, 1, 1, 1]
    assert Walked.joined([long, Walked(None, None, None, 3)]) == Walked(None, None, None, 3)
