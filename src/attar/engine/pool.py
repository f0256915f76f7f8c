"""Where independent jobs run: in this process, in local processes, or on a Ray cluster."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, Literal, TypeVar

import torch

from attar.core.errors import AttarError, require
from attar.core.signals import Interrupted, raised
from attar.engine.follow import end_with_parent
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
    address: str | None = None,
) -> Iterator[tuple[Job, Result]]:
    """Run ``work(shared, job)`` for every job and yield results as they are done.

    ``work`` must be a module-level function. ``shared`` is sent once to each worker, so large data is not copied for
    each job. The cores are divided among local workers.

    Args:
        work: The function.
        shared: What all jobs need.
        jobs: The jobs.
        workers: Processes that work at the same time.
        where: ``local`` or ``ray``.
        address: Of a Ray cluster; by default ``$RAY_ADDRESS``, else Ray starts on this machine.
    """
    if workers < 1:
        raise AttarError(f"workers must be at least 1, got {workers}.")
    if where == "ray":
        return _on_ray(work, shared, jobs, workers, address)
    if address is not None:
        raise AttarError(f"The address {address} is of a Ray cluster: choose the engine ray, or leave it out.")
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
    end_with_parent()


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
    work: Callable[[Shared, Job], Result],
    shared: Shared,
    jobs: Sequence[Job],
    workers: int,
    address: str | None,
) -> Iterator[tuple[Job, Result]]:
    cluster = address or os.environ.get("RAY_ADDRESS")
    if not cluster:
        _keep_local()
    ray = require("ray", "ray")
    started = not ray.is_initialized()
    if started:
        if cluster:
            _require_reachable(cluster)
        try:
            ray.init(address, num_cpus=None if cluster else workers, include_dashboard=False, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise AttarError(
                f"Ray does not start ({reason}): check the address and the versions of the nodes."
            ) from error
    try:
        reference, task = ray.put(shared), ray.remote(_call)
        pending = {task.remote(work, reference, job): job for job in jobs}
        while pending:
            (done,), _ = ray.wait(list(pending), num_returns=1)
            yield pending.pop(done), _result(ray, done)
    finally:
        if started:
            ray.shutdown()


def _keep_local() -> None:
    """Let a Ray that is started here listen on the loopback address only and ask for a token, unless you say otherwise.

    Ray reads the address and the mode when it is imported; one that your program imported before keeps its own, and
    takes the token. Versions before 2.52 know no tokens.
    """
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # in spite of its name, on every system
    if not any(name in os.environ for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")):
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        if "ray" not in sys.modules:
            os.environ["RAY_AUTH_MODE"] = "token"


def _require_reachable(address: str) -> None:
    """Raise at once if nothing answers at the address of a cluster; Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # a name that Ray itself resolves, such as auto
    try:
        socket.create_connection((host, int(port)), timeout=GRACE).close()
    except OSError as error:
        raise AttarError(
            f"No Ray cluster answers at {address} ({error.strerror or error}): check the address, or start one with "
            "`ray start --head`."
        ) from error


def _result(ray: ModuleType, reference: Any) -> Any:
    """What a task returned; its error as it was raised, and that of a lost node in one sentence."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise (error.cause if isinstance(error.cause, Exception) else error) from None
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).split())[:200]
        raise AttarError(
            f"A worker of Ray was lost ({reason}): check memory and disk of its node, and run again."
        ) from error


def _call(work: Callable[[Shared, Job], Result], shared: Shared, job: Job) -> Result:
    return work(shared, job)  # Ray takes functions only, and the work may be a partial one
