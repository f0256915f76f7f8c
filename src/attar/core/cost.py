"""What a piece of work costs: wall time, processor time, peak memory."""

from __future__ import annotations

import ctypes
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic.dataclasses import dataclass

_STATM = Path("/proc/self/statm")


@dataclass
class Cost:
    """Seconds on the wall, seconds of processor, and the peak resident memory in bytes while the work ran."""

    wall: float = 0.0
    cpu: float = 0.0
    memory: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu, max(self.memory, other.memory))


@contextmanager
def measure(every: float = 0.02) -> Iterator[Cost]:
    """Fill in the yielded ``Cost`` when the block ends.

    Resident memory is polled by a thread: the kernel's own peak cannot be reset between two pieces of work.
    """
    _give_back()
    cost, done = Cost(), threading.Event()

    def watch() -> None:
        while not done.is_set():
            cost.memory = max(cost.memory, resident())
            done.wait(every)

    watcher = threading.Thread(target=watch, daemon=True)
    wall, cpu = time.perf_counter(), time.process_time()
    watcher.start()
    try:
        yield cost
    finally:
        done.set()
        watcher.join()
        cost.memory = max(cost.memory, resident())
        cost.wall, cost.cpu = time.perf_counter() - wall, time.process_time() - cpu


def _give_back() -> None:
    """Return freed memory to the system, or it would count as this work's."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # glibc; musl has none
        libc.malloc_trim(0)


def resident() -> int:
    """Resident memory of this process in bytes (its peak so far where the system tells no more)."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
