import ctypes
import sys
import time
from mmap import PAGESIZE, mmap

import pytest

from attar.core.cost import Cost, measure, resident

MIB = 2**20


def test_sleeping_costs_wall_time_and_no_processor() -> None:
    with measure() as cost:
        time.sleep(0.3)
    assert 0.3 <= cost.wall < 2
    assert cost.cpu < 0.2


def test_computing_costs_processor_time() -> None:
    with measure() as cost:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
    assert 0.2 <= cost.cpu <= cost.wall + 0.1


def test_memory_is_the_peak_while_the_work_ran_even_if_it_was_given_back() -> None:
    before = resident()
    with measure(every=0.005) as cost:
        with mmap(-1, 64 * MIB) as big:  # not from the heap, which may hold as much already
            for page in range(0, len(big), PAGESIZE):
                big[page] = 1
            time.sleep(0.1)
        assert resident() < before + 60 * MIB
    assert cost.memory >= before + 60 * MIB


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
            time.sleep(0.05)
            raise KeyError

    costs: list[Cost] = []
    with pytest.raises(KeyError):
        fail(costs)
    assert costs[0].wall >= 0.05
    assert costs[0].memory > 0


def test_times_add_up_and_memory_does_not() -> None:
    assert Cost(1, 2, 30) + Cost(10, 20, 3) == Cost(11, 22, 30)
