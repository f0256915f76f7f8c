"""One job as a worker does it, and what its caller hears of it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
Shared = TypeVar("Shared")

RETRIES = 2  #: times that a job is run again after its worker was killed
Said = list[tuple[str, type[Warning]]]


def threads_of(workers: int) -> int:
    """Threads of each of so many workers, among whom the cores of this machine are divided."""
    return max(1, (os.cpu_count() or 1) // workers)


def heard(work: Callable[[Shared, Job], Result], shared: Shared, job: Job) -> tuple[Result, Said]:
    """The result of a job, and the warnings that it raised, for the caller to show."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = work(shared, job)
    return result, [(str(warning.message), warning.category) for warning in said]


def repeat(said: Sequence[tuple[str, type[Warning]]]) -> None:
    """Raise the warnings of a worker here, where the user's filters decide."""
    for message, kind in said:
        warnings.warn_explicit(message, kind, __name__, 1)
