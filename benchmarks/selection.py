"""Claim: facility location picks the same as submodlib-py and apricot-select, at least 8 times faster than the first.

All get one table of similarities for 5,000 points and pick 100 by their own lazy greedy algorithm. The two other
packages are not dependencies: they run in the Python interpreter that the environment variable ``RIVALS`` names (with
``submodlib-py`` and ``apricot-select`` installed), and are left out if it is not set. A plain lazy greedy with a heap
in numpy always runs. Rounds alternate, in one thread, and processor seconds are counted, without apricot's first round,
in which it compiles.
"""

from __future__ import annotations

import heapq
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from attar.core.files import write_json
from attar.engine import keep_freed_memory
from attar.select.facility import FacilityLocation, Table
from attar.select.greedy import lazy
from attar.study.results import machine, versions
from benchmarks import RESULTS

N, PICKS, SIZE, ROUNDS = 5000, 100, 32, 5
RIVAL = """
import json, sys, time, warnings
import numpy as np
warnings.filterwarnings("ignore")
name, table, picks, answer = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

def apricot():
    found = FacilityLocationSelection(picks, metric="precomputed", optimizer="lazy").fit(table)
    return [int(i) for i in found.ranking]

def submodlib():
    objective = FacilityLocationFunction(n=len(table), mode="dense", sijs=table, separate_rep=False)
    found = objective.maximize(budget=picks, optimizer="LazyGreedy", stopIfZeroGain=False, verbose=False)
    return [int(i) for i, _ in found]

if name == "apricot":
    from apricot import FacilityLocationSelection
    table = table.astype(np.float64)
    apricot()
else:
    from submodlib import FacilityLocationFunction
start = time.process_time()
indices = {"apricot": apricot, "submodlib": submodlib}[name]()
seconds = time.process_time() - start
json.dump({"seconds": seconds, "picks": indices}, open(answer, "w"))
"""

P = ParamSpec("P")
R = TypeVar("R")


def main(n: int = N, picks: int = PICKS, rounds: int = ROUNDS) -> list[Path]:
    """Measure and write one JSON file."""
    keep_freed_memory()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = _compare(n, picks, rounds)
    finally:
        torch.set_num_threads(threads)
    result = {
        "command": "RIVALS=<python with the rivals> python -m benchmarks selection",
        "setting": {"points": n, "picks": picks, "coordinates": SIZE, "threads": 1, "greedy": "lazy"},
        **found,
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / "selection" / "facility.json"
    write_json(path, result)
    return [path]


def alone(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function in a separate process, so that its peak memory can be measured."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args, **kwargs).result()


def _compare(n: int, picks: int, rounds: int) -> dict[str, Any]:
    x = torch.randn(n, SIZE, generator=torch.Generator().manual_seed(0))
    distances = torch.cdist(x, x)
    similarities = (distances.max() - distances).numpy()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "similarities.npy"
        np.save(table, similarities)
        ways: dict[str, Callable[[], tuple[float, list[int]]]] = {
            "attar": lambda: _timed(lambda: lazy(FacilityLocation(Table(distances)), picks).indices.tolist()),
            "plain numpy": lambda: _timed(lambda: _plain(similarities, picks)),
        }
        rivals = os.environ.get("RIVALS")
        if rivals:
            ways["submodlib-py"] = lambda: _rival(rivals, "submodlib", table, picks)
            ways["apricot-select"] = lambda: _rival(rivals, "apricot", table, picks)
        ways["attar"]()  # the first call includes one-time set-up
        found = [{name: way() for name, way in ways.items()} for _ in range(rounds)]
    seconds = {name: [r[name][0] for r in found] for name in ways}
    return {
        "cpu_seconds": {name: {"median": median(all_), "all": all_} for name, all_ in seconds.items()},
        "times_longer_than_attar": {n: median(r[n][0] / r["attar"][0] for r in found) for n in ways if n != "attar"},
        "same_picks": {name: all(r[name][1] == r["attar"][1] for r in found) for name in ways},
        "left_out": [] if rivals else ["submodlib-py", "apricot-select"],
    }


def _timed(work: Callable[[], list[int]]) -> tuple[float, list[int]]:
    start = time.process_time()
    picks = work()
    return time.process_time() - start, picks


def _rival(python: str, name: str, table: Path, picks: int) -> tuple[float, list[int]]:
    answer = table.with_suffix(".json")
    one = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [python, "-c", RIVAL, name, str(table), str(picks), str(answer)]
    subprocess.run(command, env=one, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = json.loads(answer.read_text())
    return found["seconds"], found["picks"]


def _plain(table: NDArray[np.float32], picks: int) -> list[int]:
    """Minoux's lazy greedy with a heap, one candidate at a time."""
    best = np.zeros(len(table), dtype=table.dtype)
    heap = [(-float(gain), i) for i, gain in enumerate(table.sum(1, dtype=np.float64))]
    heapq.heapify(heap)
    taken: list[int] = []
    while len(taken) < picks:
        _, i = heapq.heappop(heap)
        gain = float(np.maximum(table[i] - best, 0).sum())
        if not heap or -gain <= heap[0][0]:
            best = np.maximum(best, table[i])
            taken.append(i)
        else:
            heapq.heappush(heap, (-gain, i))
    return taken
