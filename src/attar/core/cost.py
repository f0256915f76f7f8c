"""Wall time, processor time and peak memory of a block of code; and how much memory is free."""

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

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

_STATM = Path("/proc/self/statm")
_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")  # limits of a container, which /proc/meminfo does not show
_GROUP_FILES = (
    ("memory.max", "memory.current"),  # version 2: the limit, and what is used of it
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),  # version 1
)


@dataclass(config=ConfigDict(allow_inf_nan=False))
class Cost:
    """Wall-clock seconds, processor seconds, and peak resident memory in bytes."""

    wall: float = 0.0
    cpu: float = 0.0
    memory: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu, max(self.memory, other.memory))


@contextmanager
def measure(every: float = 0.02) -> Iterator[Cost]:
    """Fill in the yielded ``Cost`` when the block ends.

    A thread polls the resident memory: the kernel's own peak cannot be reset between two measurements.
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
    """Return freed memory to the system, so that it does not count."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # glibc; musl has none
        libc.malloc_trim(0)


def resident() -> int:
    """Resident memory of this process in bytes (its peak so far if the system reports no more)."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def available() -> int:
    """Bytes of free memory, on this machine and within the limit of a container."""
    return max(0, min(_in_machine(), *(_in_group(*names) for names in _GROUP_FILES)))


def _in_machine() -> int:
    lines = _MEMINFO.read_text().splitlines() if _MEMINFO.exists() else []
    told = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    half = os.sysconf("SC_PHYS_PAGES") * resource.getpagesize() // 2
    return told[0] if told else half  # a guess if the system does not report it


def _in_group(limit: str, used: str) -> int:
    most = (_GROUP / limit).read_text().strip() if (_GROUP / limit).exists() else "max"
    return int(most) - int((_GROUP / used).read_text()) if most.isdigit() else sys.maxsize
