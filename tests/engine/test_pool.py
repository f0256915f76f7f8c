import os
from typing import Any

import pytest
import torch

from attar.core.errors import AttarError
from attar.engine import Engine, run_all


def double(shared: torch.Tensor, job: int) -> tuple[int, int]:
    return int(shared.sum()) + 2 * job, os.getpid()


def test_one_worker_runs_here_and_in_order() -> None:
    results = list(run_all(double, torch.ones(3), [1, 2, 3]))
    assert [(job, value) for job, (value, _) in results] == [(1, 5), (2, 7), (3, 9)]
    assert {pid for _, (_, pid) in results} == {os.getpid()}


def threads(shared: None, job: int) -> int:
    return torch.get_num_threads()


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_has_the_threads_that_are_asked_for(workers: int) -> None:
    before = torch.get_num_threads()
    engine = Engine(workers=workers, cpus_per_job=before + 2)
    assert dict(run_all(threads, None, [1, 2], engine)) == {1: before + 2, 2: before + 2}
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"workers": 0}, "workers must be at least 1"),
        ({"where": "slurm"}, "Unknown engine 'slurm': choose from local, ray"),
        ({"address": "head:6379"}, "is of a Ray cluster: choose the engine ray"),
        ({"gpus_per_job": 1}, "Only Ray assigns GPUs to jobs: choose the engine ray"),
        ({"where": "ray", "gpus_per_job": 1.5}, "a whole number, or a share below 1"),
        ({"where": "ray", "gpus_per_job": float("nan")}, "a whole number, or a share below 1"),
        ({"cpus_per_job": 0}, "Processors per job must be at least 1, got 0"),
    ],
)
def test_bad_engines_are_one_sentence(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(AttarError, match=message):
        Engine(**asked)


def test_an_engine_is_named_or_given_whole() -> None:
    assert Engine.of("ray", 3, "head:6379") == Engine("ray", 3, "head:6379")
    whole = Engine("ray", 2, gpus_per_job=0.5)
    assert Engine.of(whole) is whole
    with pytest.raises(AttarError, match="has its own workers and address"):
        Engine.of(whole, workers=4)


def test_workers_without_a_job_are_left_out() -> None:
    assert [Engine(workers=4).at_most(jobs).workers for jobs in (0, 1, 3, 9)] == [1, 1, 3, 4]
