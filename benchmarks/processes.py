"""Question: how much faster do two processes compute one condensation than one, with one thread each?

Rounds take turns, one process and two, and the median of the wall-clock seconds of all steps of each counts: the speed
of shared machines changes within seconds. Two processes need two idle cores: on a busy machine the ratio says nothing.
The examples of both are compared after the last step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch

import attar
from attar.condense.driver import Step
from attar.core.files import write_json
from attar.engine import keep_freed_memory
from attar.study.results import machine, versions
from benchmarks import RESULTS

NETWORK, PER_CLASS, STEPS, ROUNDS = "convnet-d3w64", 10, 6, 4
METHODS: dict[str, dict[str, Any]] = {
    "dm": {"batch": 128},
    "dc": {"batch": 128, "net_steps": 10},
    "vbpc": {"batch": 1024},
}


def main() -> list[Path]:
    """Measure and write one JSON file."""
    torch.set_num_threads(1)
    keep_freed_memory()
    data = attar.load("fashion-mnist").train
    found = {method: _rounds(data, method) for method in METHODS}
    path = RESULTS / "processes" / "processes.json"
    setting = {"network": NETWORK, "per_class": PER_CLASS, "steps": STEPS, "rounds": ROUNDS, "options": METHODS}
    command = "python -m benchmarks processes"
    write_json(
        path,
        {"command": command, "setting": setting, "methods": found, "versions": versions(), "machine": machine()},
    )
    return [path]


def _rounds(data: attar.Data, method: str) -> dict[str, Any]:
    seconds: dict[int, list[float]] = {1: [], 2: []}
    last: dict[int, torch.Tensor] = {}
    for _ in range(ROUNDS):
        for processes, taken in seconds.items():
            coreset, steps = _run(data, method, processes)
            taken += steps
            last[processes] = coreset.data.x
    ratio, gap = median(seconds[1]) / median(seconds[2]), float((last[1] - last[2]).abs().max())
    sys.stderr.write(f"{method}: {ratio:.2f} times as fast, largest difference {gap:.1e}\n")
    return {"times_faster": ratio, "largest_difference": gap, "seconds_per_step": seconds}


def _run(data: attar.Data, method: str, processes: int) -> tuple[attar.Coreset, list[float]]:
    """The coreset, and the wall-clock seconds of every step but the first."""
    times: list[float] = []

    def watch(steps: Iterable[Step]) -> Iterator[Step]:
        for step in steps:
            times.append(time.perf_counter())
            yield step

    coreset = attar.reduce(
        data,
        method,
        per_class=PER_CLASS,
        network=NETWORK,
        options=METHODS[method],
        descent={"steps": STEPS},
        observers=[watch],
        processes=processes,
    )
    return coreset, [after - before for before, after in pairwise(times)]
