import ctypes
import os
import sys
import time
from collections.abc import Callable
from mmap import PAGESIZE, mmap
from pathlib import Path

import pytest

from attar.core import cost as module
from attar.core.cost import Cost, available, measure, resident
from tests.known import wait_until

MIB = 2**20


def sleep() -> None:
    time.sleep(0.1)


def compute() -> None:
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass


@pytest.mark.parametrize("work", [sleep, compute])
def test_cost_is_what_the_clocks_of_wall_and_processor_say_from_inside_to_outside(work: Callable[[], None]) -> None:
    clocks = time.perf_counter, time.process_time
    outside = [clock() for clock in clocks]
    with measure() as cost:
        inside = [clock() for clock in clocks]
        work()
        least = [clock() - start for clock, start in zip(clocks, inside, strict=True)]
    most = [clock() - start for clock, start in zip(clocks, outside, strict=True)]
    assert least[0] <= cost.wall <= most[0]
    assert least[1] <= cost.cpu <= most[1]


def test_memory_is_the_peak_while_the_work_ran_even_if_it_was_given_back() -> None:
    with measure(every=0.005) as cost:
        before = resident()
        with mmap(-1, 64 * MIB) as big:  # not from the heap, which may hold as much already
            for page in range(0, len(big), PAGESIZE):
                big[page] = 1
            wait_until(lambda: cost.memory >= before + 60 * MIB)  # until it was looked at
        assert resident() < before + 60 * MIB
    assert before + 60 * MIB <= cost.memory < before + 128 * MIB


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc gives freed memory back when asked")
def test_memory_that_earlier_work_freed_is_not_counted() -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("no glibc")
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    small = 64 * 1024  # from the heap, which keeps what is freed
    blocks = [libc.malloc(small) for _ in range(64 * MIB // small)]
    for block in blocks:
        ctypes.memset(block, 1, small)
    last = libc.malloc(small)  # keeps the heap from shrinking by itself
    for block in blocks:
        libc.free(block)
    kept = resident()
    with measure() as cost:
        pass
    libc.free(last)
    assert cost.memory < kept - 48 * MIB


def test_the_cost_of_work_that_fails_is_filled_in_too() -> None:
    def fail(costs: list[Cost]) -> None:
        with measure() as cost:
            costs.append(cost)
            raise KeyError

    costs: list[Cost] = []
    with pytest.raises(KeyError):
        fail(costs)
    assert costs[0].wall > 0
    assert costs[0].memory > 0


def test_times_add_up_and_memory_does_not() -> None:
    assert Cost(1, 2, 30) + Cost(10, 20, 3) == Cost(11, 22, 30)


PHYSICAL = os.sysconf("SC_PHYS_PAGES") * PAGESIZE


def test_some_memory_is_available_and_no_more_than_there_is() -> None:
    assert 0 < available() < PHYSICAL


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, 8 * MIB),
        ({"memory.max": "max", "memory.current": str(MIB)}, 8 * MIB),
        ({"memory.max": str(5 * MIB), "memory.current": str(2 * MIB)}, 3 * MIB),
        ({"memory.max": str(MIB), "memory.current": str(2 * MIB)}, 0),
        ({"memory/memory.limit_in_bytes": str(6 * MIB), "memory/memory.usage_in_bytes": str(2 * MIB)}, 4 * MIB),
        ({"memory/memory.limit_in_bytes": str(2**63 - 4096), "memory/memory.usage_in_bytes": str(MIB)}, 8 * MIB),
    ],
)
def test_available_memory_is_what_the_machine_and_the_container_both_have_left(
    files: dict[str, str], found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(module, "_GROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 10240 kB\nMemFree: 1024 kB\nMemAvailable: 8192 kB\n")
    (tmp_path / "memory").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    assert available() == found


def test_half_of_the_memory_counts_as_available_where_the_system_tells_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(module, "_GROUP", tmp_path)
    assert available() == PHYSICAL // 2
