"""Claim: k-center and herding take no longer than a plain loop in numpy, and herding a fifth of coreax's time.

Features of 10,000 examples, 200 picks. The numpy loops are as one would write them: squared norms once, then one
product of the features with a vector per pick. coreax herds with a linear kernel, compiled before; the means of its
kernel's rows, which it computes from all pairs, are counted apart. It has no k-center. coreax is not a dependency: it
runs in the Python interpreter that the environment variable ``RIVALS`` names, and is left out if that is not set.
Rounds alternate, in one thread, and the fastest processor seconds count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from attar.core import registry
from attar.core.files import write_json
from attar.select.contract import Selector
from attar.select.sources import from_embeddings
from attar.study.results import machine, versions
from benchmarks import RESULTS

POINTS, SIZE, PICKS, ROUNDS = 10_000, 512, 200, 5
METHODS = ("k-center", "herding")
RIVAL = """
import json, sys, time
import jax, numpy as np
from coreax import Data
from coreax.kernels import LinearKernel
from coreax.solvers import HerdingState, KernelHerding
x, picks = jax.numpy.asarray(np.load(sys.argv[1])), int(sys.argv[2])
herding = KernelHerding(picks, LinearKernel(), block_size=1000)
means = jax.jit(lambda x: herding.kernel.gramian_row_mean(x, block_size=1000))
loop = jax.jit(lambda x, rows: herding.reduce(Data(x), HerdingState(rows))[0].indices.data)
times = []
for _ in range(2):  # the first includes compilation
    start = time.process_time()
    rows = means(x).block_until_ready()
    middle = time.process_time()
    loop(x, rows).block_until_ready()
    times = [time.process_time() - start, time.process_time() - middle]
print(json.dumps(times))
"""
ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
ONE |= {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


def main(rounds: int = ROUNDS) -> list[Path]:
    """Measure and write one JSON file."""
    command = [sys.executable, "-c", f"from benchmarks.selection_peers import work; work({rounds})"]
    answer = subprocess.run(command, env=os.environ | ONE, capture_output=True, text=True, check=True)
    result = {
        "command": "RIVALS=<python with coreax> python -m benchmarks selection_peers",
        "setting": {"points": POINTS, "features": SIZE, "picks": PICKS, "threads": 1, "rounds": rounds},
        **json.loads(answer.stdout.splitlines()[-1]),
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / "selection" / "peers.json"
    write_json(path, result)
    return [path]


def work(rounds: int) -> None:
    """The measurement of a process with one thread, printed as JSON."""
    torch.set_num_threads(1)
    x = np.random.default_rng(0).standard_normal((POINTS, SIZE), dtype=np.float32).clip(min=0)
    rivals, found = os.environ.get("RIVALS"), dict[str, list[float]]()
    same: dict[str, list[int]] = {}
    loops: dict[str, Callable[[NDArray[np.float32], int], list[int]]] = {"k-center": _k_center, "herding": _herding}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "features.npy"
        np.save(table, x)
        for _ in range(rounds):
            for name in METHODS:
                ours = _timed(found, f"{name} attar", partial(_ours, registry.build(name, {}, "select"), x))
                plain = _timed(found, f"{name} numpy", partial(loops[name], x, PICKS))
                same.setdefault(name, []).append(sum(a == b for a, b in zip(ours, plain, strict=True)))
            if rivals:
                both = subprocess.run([rivals, "-c", RIVAL, str(table), str(PICKS)], capture_output=True, check=True)
                times = json.loads(both.stdout.splitlines()[-1])
                for way, seconds in zip(("with row means", "loop"), times, strict=True):
                    found.setdefault(f"herding coreax, {way}", []).append(seconds)
    sys.stdout.write(json.dumps({"times_longer_than_attar": _ratios(found), "cpu_seconds": found, "same_picks": same}))


def _ratios(found: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    best = {way: min(seconds) for way, seconds in found.items()}
    return {
        name: {
            way.removeprefix(f"{name} "): best[way] / best[f"{name} attar"]
            for way in best
            if way.startswith(name) and way != f"{name} attar"
        }
        for name in METHODS
    }


def _timed(found: dict[str, list[float]], name: str, work: Callable[[], list[int]]) -> list[int]:
    start = time.process_time()
    picks = work()
    found.setdefault(name, []).append(time.process_time() - start)
    return picks


def _ours(method: Selector, x: NDArray[np.float32]) -> list[int]:
    picks: list[int] = method.select(from_embeddings(x), PICKS, torch.Generator().manual_seed(0)).indices.tolist()
    return picks


def _k_center(x: NDArray[np.float32], picks: int) -> list[int]:
    """Farthest-first traversal from the example nearest to the mean."""
    x = x - x.mean(0)
    square = (x * x).sum(1)
    chosen = [int(square.argmin())]
    near = np.full(len(x), np.inf, dtype=np.float32)
    while len(chosen) < picks:
        last = chosen[-1]
        near = np.minimum(near, square - 2 * (x @ x[last]) + square[last])
        chosen.append(int(near.argmax()))
    return chosen


def _herding(x: NDArray[np.float32], picks: int) -> list[int]:
    """Greedily the nearest mean of picks to the mean of all."""
    x = x - x.mean(0)
    half = (x * x).sum(1) / 2
    total, chosen = np.zeros_like(x[0]), list[int]()
    for _ in range(picks):
        chosen.append(int((-(x @ total) - half).argmax()))
        half[chosen[-1]] = np.inf
        total = total + x[chosen[-1]]
    return chosen
