"""Jobs in processes of this machine, which share the tensors that they all need."""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from multiprocessing import connection, get_context
from typing import Any, TypeVar

import torch

from attar.core.errors import AttarError
from attar.core.signals import Interrupted, raised
from attar.engine.follow import end_with_parent
from attar.engine.job import RETRIES, heard, repeat
from attar.engine.memory import keep_freed_memory

Job = TypeVar("Job")
Result = TypeVar("Result")
Shared = TypeVar("Shared")

GRACE = 30.0  #: seconds for interrupted workers to save


def in_processes(
    work: Callable[[Shared, Job], Result], shared: Shared, jobs: Sequence[Job], workers: int, threads: int
) -> Iterator[tuple[Job, Result]]:
    """Run the jobs in so many processes; the job of one that is killed is run again in a new process."""
    left, killed = deque(range(len(jobs))), Counter[int]()
    all_: list[_Worker] = []
    idle: list[_Worker] = []
    busy: dict[_Worker, int] = {}

    def hand_out() -> None:
        while left and len(busy) < workers:
            if not idle:
                all_.append(_Worker(work, shared, threads))  # known before it starts, so that it is always ended
                idle.append(all_[-1])
            worker = idle.pop()
            busy[worker] = left.popleft()
            worker.give(jobs[busy[worker]])

    stop = partial(_end, all_)
    atexit.register(stop)  # before the interpreter waits for all processes
    try:
        while left or busy:
            hand_out()
            for worker in _ready(busy):
                place = busy.pop(worker)
                answer = worker.answer()
                if answer is None:
                    killed[place] += 1
                    _require_more_tries(worker, killed[place])
                    left.appendleft(place)
                    continue
                idle.append(worker)
                if isinstance(answer, BaseException):
                    raise answer
                result, said = answer
                repeat(said)
                hand_out()
                yield jobs[place], result
    finally:  # also when one job fails: otherwise the program would wait for the others
        stop()
        atexit.unregister(stop)


def _require_more_tries(dead: _Worker, times: int) -> None:
    """Tell that a job starts again, or raise if its worker was killed too often, or ended by itself."""
    ended = dead.process.exitcode or 0
    if 0 <= ended < 128 or times > RETRIES:  # killed by a signal, or saved and ended after one
        often = f" {times} times in one job" if times > 1 else ""
        raise AttarError(
            f"A worker process was ended from outside{often}, perhaps for lack of memory: try again with fewer "
            "workers; finished work is kept."
        )
    number = -ended if ended < 0 else ended - 128
    warnings.warn(
        f"A worker process was ended from outside (signal {number}), perhaps for lack of memory: another one goes on "
        "with its job.",
        RuntimeWarning,
        stacklevel=3,
    )


class _Worker:
    """A process that does one job after the other."""

    def __init__(self, work: Any, shared: Any, threads: int) -> None:
        context = get_context("spawn")  # a fork would inherit locked thread pools
        self.pipe, self.theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(self.theirs, work, shared, threads))

    def give(self, job: Any) -> None:
        if self.process.pid is None:
            self.process.start()
            self.theirs.close()  # so that the pipe ends with the process
        try:
            self.pipe.send(job)
        except OSError:  # it is dead, which the end of the pipe tells, too
            return

    def answer(self) -> Any:
        """What the job gave or raised; None if the process ended."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(GRACE)
            if self.process.exitcode is None:  # it lives: what it sent could not be read
                raise
            return None


def _ready(workers: Iterable[_Worker]) -> list[_Worker]:
    """Those that have an answer, or have ended; waits for the first."""
    by_pipe = {worker.pipe: worker for worker in workers}
    return [by_pipe[pipe] for pipe in connection.wait(list(by_pipe)) if isinstance(pipe, connection.Connection)]


def _end(workers: Sequence[_Worker]) -> None:
    """Ask workers to save and end, and kill those that still run after a while, or at the next signal."""
    until = time.monotonic() + GRACE
    started = [worker.process for worker in workers if worker.process.pid is not None]
    try:
        for process in started:
            process.terminate()
        for process in started:
            process.join(max(0.0, until - time.monotonic()))
    finally:
        for process in started:
            process.kill()
            process.join(5.0)
        for worker in workers:
            worker.pipe.close()
            worker.theirs.close()


def _serve(pipe: connection.Connection, work: Any, shared: Any, threads: int) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends these to all; the parent tells us what to do
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(threads)
    keep_freed_memory()
    end_with_parent()
    while True:
        try:
            answer = _answer(work, shared, pipe.recv())
        except EOFError:  # the parent has no more jobs
            return
        try:
            pipe.send(answer)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            pipe.send(RuntimeError(f"What a job gave cannot be sent to the process that asked: {error}"))


def _answer(work: Any, shared: Any, job: Any) -> Any:
    try:
        with raised():
            return heard(work, shared, job)
    except Interrupted as stop:
        os._exit(128 + stop.number)
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        return error
