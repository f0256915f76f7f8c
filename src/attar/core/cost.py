"""What a piece of work costs, in wall time, processor time and peak memory; and what memory there is to use."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic.dataclasses import dataclass

_STATM = Path("/proc/self/statm")
_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")  # of a container, whose limit the machine's figures leave out
_GROUP_FILES = (
    ("memory.max", "memory.current"),  # version 2: the limit, and what is used of it
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),  # version 1
)


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


def available() -> int:
    """Bytes of memory that can still be used, in this machine and within the limit of a container."""
    return max(0, min(_in_machine(), *(_in_group(*names) for names in _GROUP_FILES)))


def _in_machine() -> int:
    lines = _MEMINFO.read_text().splitlines() if _MEMINFO.exists() else []
    told = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    half = os.sysconf("SC_PHYS_PAGES") * resource.getpagesize() // 2
    return told[0] if told else half  # where the system tells no more


def _in_group(limit: str, used: str) -> int:
    most = (_GROUP / limit).read_text().strip() if (_GROUP / limit).exists() else "max"
    return int(most) - int((_GROUP / used).read_text()) if most.isdigit() else sys.maxsize
