"""Where independent jobs run: in this process, in local processes, or on a Ray cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any, Literal, TypeVar

import torch

from attar.core.errors import AttarError, require
from attar.core.signals import Interrupted, raised
from attar.engine.memory import keep_freed_memory

Job = TypeVar("Job")
Result = TypeVar("Result")
Shared = TypeVar("Shared")
Where = Literal["local", "ray"]

GRACE = 30.0  #: seconds for interrupted workers to save


def run_all(
    work: Callable[[Shared, Job], Result],
    shared: Shared,
    jobs: Sequence[Job],
    *,
    workers: int = 1,
    where: Where = "local",
) -> Iterator[tuple[Job, Result]]:
    """Run ``work(shared, job)`` for every job and yield results as they are done.

    ``work`` must be a module-level function. ``shared`` is sent once to each worker, so large data is not copied for
    each job. The cores are divided among local workers.
    """
    if workers < 1:
        raise AttarError(f"workers must be at least 1, got {workers}.")
    if where == "ray":
        return _on_ray(work, shared, jobs, workers)
    if workers == 1:
        return ((job, work(shared, job)) for job in jobs)
    return _in_processes(work, shared, jobs, workers)


def _in_processes(
    work: Callable[[Shared, Job], Result], shared: Shared, jobs: Sequence[Job], workers: int
) -> Iterator[tuple[Job, Result]]:
    threads = max(1, (os.cpu_count() or 1) // workers)
    context = get_context("spawn")  # a fork would inherit locked thread pools
    others = set(active_children())
    with ProcessPoolExecutor(workers, context, _begin, (work, shared, threads)) as pool:
        pending = {pool.submit(_work, job): job for job in jobs}
        try:
            for done in as_completed(pending):
                result, said = done.result()
                for message, kind in said:
                    warnings.warn_explicit(message, kind, __name__, 1)  # the user's filters decide here
                yield pending[done], result
        except BrokenProcessPool as error:
            _end(set(active_children()) - others)
            raise AttarError(
                "A worker process was ended from outside, perhaps for lack of memory: try again with fewer workers; "
                "finished work is kept."
            ) from error
        except BaseException:  # also when one job fails: otherwise the program would wait for the others
            _end(set(active_children()) - others)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _end(workers: set[BaseProcess]) -> None:
    """Ask workers to save and end, and kill those that still run after a while, or at the next signal."""
    until = time.monotonic() + GRACE
    try:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join(max(0.0, until - time.monotonic()))
    finally:
        for worker in workers:
            worker.kill()
            worker.join(5.0)


_held: list[Any] = []  # what a worker process was started with


def _begin(work: Any, shared: Any, threads: int) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends these to all; the parent tells us what to do
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(threads)
    keep_freed_memory()
    _held[:] = [work, shared]
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """End with the parent, even if it was killed: otherwise old workers could write during a new run."""
    if parent := parent_process():
        parent.join()
        os._exit(1)


def _work(job: Any) -> tuple[Any, list[tuple[str, type[Warning]]]]:
    """The result of one job and the warnings that it raised, which the parent shows."""
    work, shared = _held
    try:
        with raised(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = work(shared, job)
        return result, [(str(warning.message), warning.category) for warning in said]
    except Interrupted as stop:
        os._exit(128 + stop.number)  # returning would make the pool start the next job


def _on_ray(
    work: Callable[[Shared, Job], Result], shared: Shared, jobs: Sequence[Job], workers: int
) -> Iterator[tuple[Job, Result]]:
    ray = require("ray", "ray")
    started = not ray.is_initialized()
    if started:  # RAY_ADDRESS names a cluster; without it Ray starts locally
        ray.init(
            num_cpus=None if os.environ.get("RAY_ADDRESS") else workers, include_dashboard=False, log_to_driver=False
        )
    try:
        reference, task = ray.put(shared), ray.remote(_call)
        pending = {task.remote(work, reference, job): job for job in jobs}
        while pending:
            (done,), _ = ray.wait(list(pending), num_returns=1)
            yield pending.pop(done), ray.get(done)
    finally:
        if started:
            ray.shutdown()


def _call(work: Callable[[Shared, Job], Result], shared: Shared, job: Job) -> Result:
    return work(shared, job)  # Ray takes functions only, and the work may be a partial one
