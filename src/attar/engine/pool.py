"""Where independent jobs run: in this process, in local processes, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

import torch

from attar.core.errors import AttarError, unknown
from attar.engine.cluster import on_ray
from attar.engine.job import threads_of
from attar.engine.processes import in_processes

Job = TypeVar("Job")
Result = TypeVar("Result")
Shared = TypeVar("Shared")
Where = Literal["local", "ray"]


@dataclass(frozen=True)
class Engine:
    """Where jobs run, and how many at the same time.

    Args:
        where: ``local``, or ``ray`` (an extra).
        workers: Processes that work at the same time. A Ray cluster that already runs takes as many jobs as it has
            processors, or GPUs, for.
        address: Of a Ray cluster; by default ``$RAY_ADDRESS``, else Ray starts on this machine.
        gpus_per_job: GPUs that Ray gives to each job; below one, several jobs share a GPU.
        cpus_per_job: Threads of each job, for which Ray keeps as many processors. By default the cores of this machine
            are divided among the workers; on a Ray cluster that already runs, a job has one.
    """

    where: Where = "local"
    workers: int = 1
    address: str | None = None
    gpus_per_job: float = 0.0
    cpus_per_job: int | None = None

    def __post_init__(self) -> None:
        if self.where not in get_args(Where):
            raise unknown("engine", self.where, get_args(Where))
        if self.workers < 1:
            raise AttarError(f"workers must be at least 1, got {self.workers}.")
        if self.where == "local" and self.address is not None:
            raise AttarError(f"The address {self.address} is of a Ray cluster: choose the engine ray, or leave it out.")
        if not self.gpus_per_job >= 0 or (self.gpus_per_job > 1 and self.gpus_per_job % 1):
            raise AttarError(f"GPUs per job are a whole number, or a share below 1, got {self.gpus_per_job}.")
        if self.where == "local" and self.gpus_per_job:
            raise AttarError("Only Ray assigns GPUs to jobs: choose the engine ray, or leave GPUs per job out.")

        if self.cpus_per_job is not None and self.cpus_per_job < 1:
            raise AttarError(f"Processors per job must be at least 1, got {self.cpus_per_job}.")

    @staticmethod
    def of(engine: Engine | Where, workers: int = 1, address: str | None = None) -> Engine:
        """The engine of the arguments of a function.

        Args:
            engine: Where jobs run; or the whole engine, and then the other arguments are left out.
            workers: Processes that work at the same time.
            address: Of a Ray cluster.
        """
        if isinstance(engine, str):
            return Engine(engine, workers, address)
        if workers != 1 or address is not None:
            raise AttarError("The engine has its own workers and address: leave the other arguments out.")
        return engine

    def at_most(self, jobs: int) -> Engine:
        """The same without workers that have no job.

        Args:
            jobs: How many there are.
        """
        return replace(self, workers=max(1, min(self.workers, jobs)))

    @property
    def here(self) -> bool:
        """Whether jobs run in this process."""
        return self.where == "local" and self.workers == 1


LOCAL = Engine()


def run_all(
    work: Callable[[Shared, Job], Result], shared: Shared, jobs: Sequence[Job], engine: Engine = LOCAL
) -> Iterator[tuple[Job, Result]]:
    """Run ``work(shared, job)`` for every job and yield results as they are done.

    Local workers share the tensors of ``shared``, and the cores are divided among them. On Ray every node holds one
    copy, which all its workers read. Jobs must not change it. The job of a worker or node that was killed is run again,
    twice at most, so a long one should go on from a checkpoint.

    Args:
        work: A module-level function.
        shared: What all jobs need.
        jobs: The jobs.
        engine: Where they run.
    """
    if engine.where == "ray":
        return on_ray(work, shared, jobs, engine.workers, engine.address, engine.gpus_per_job, engine.cpus_per_job)
    if engine.here:
        return _one_by_one(work, shared, jobs, engine.cpus_per_job)
    return in_processes(work, shared, jobs, engine.workers, engine.cpus_per_job or threads_of(engine.workers))


def _one_by_one(
    work: Callable[[Shared, Job], Result], shared: Shared, jobs: Sequence[Job], threads: int | None
) -> Iterator[tuple[Job, Result]]:
    """Run the jobs here; with so many threads during each, if they are given."""
    before = torch.get_num_threads()
    for job in jobs:
        torch.set_num_threads(threads or before)
        try:
            result = work(shared, job)
        finally:
            torch.set_num_threads(before)
        yield job, result
