"""Claim: the workers of a grid hold the data once per machine, not once each, in local processes and on Ray.

Two workers read all of the same tensor and wait for each other. Their memory is read from the system while both hold
it: the unique set size counts pages of one process only, the proportional set size divides pages among the processes
that share them. Of each, the same without data is subtracted. Beside ``run_all`` stands a task that gets the data as
Ray itself pickles tensors, which is how the data went to workers before. Linux only.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from attar.core.errors import require
from attar.core.files import write_json
from attar.engine import Engine, run_all
from attar.study.results import machine, versions
from benchmarks import RESULTS

WORKERS, MEGABYTES = 2, 256
Memory = dict[str, int]  #: bytes of a process, by kind


def main(megabytes: int = MEGABYTES) -> list[Path]:
    """Measure and write one JSON file."""
    local = Engine(workers=WORKERS)
    found = {"local processes": _more(lambda data: _all(local, data), megabytes), **_on_ray(megabytes)}
    path = RESULTS / "engine" / "memory.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks engine_memory",
            "setting": {"workers": WORKERS, "data_bytes": megabytes << 20},
            "bytes_per_worker": found,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _on_ray(megabytes: int) -> dict[str, Memory]:
    """One Ray for both ways, so that they have the same workers."""
    ray: Any = require("ray", "ray")
    given = os.environ.get("RAY_ADDRESS")
    ray.init(given or "local", num_cpus=None if given else WORKERS, log_to_driver=False)
    task = ray.remote(_held)

    def pickled(data: Tensor) -> list[Memory]:
        with tempfile.TemporaryDirectory() as folder:
            shared = ray.put((data, Path(folder)))
            found: list[Memory] = ray.get([task.remote(shared, number) for number in range(WORKERS)])
            return found

    try:
        return {
            "ray": _more(lambda data: _all(Engine("ray"), data), megabytes),
            "ray, tensors as Ray pickles them": _more(pickled, megabytes),
        }
    finally:
        ray.shutdown()


def _all(engine: Engine, data: Tensor) -> list[Memory]:
    with tempfile.TemporaryDirectory() as folder:
        return [found for _, found in run_all(_held, (data, Path(folder)), range(WORKERS), engine)]


def _more(way: Callable[[Tensor], list[Memory]], megabytes: int) -> Memory:
    """What the mean worker holds with data, less what it holds without."""
    without, with_data = way(torch.zeros(1)), way(torch.ones(megabytes << 18))
    return {
        kind: round(mean(one[kind] for one in with_data) - mean(one[kind] for one in without)) for kind in without[0]
    }


def _held(shared: tuple[Tensor, Path], number: int) -> Memory:
    """The memory of this process while all workers hold the data."""
    data, folder = shared
    assert float(data.max()) == float(data.min())  # reads all
    _meet(folder, f"read-{number}")
    lines = dict(line.split(":", 1) for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    size = {name: int(text.split()[0]) << 10 for name, text in lines.items()}
    _meet(folder, f"counted-{number}")
    return {"unique": size["Private_Clean"] + size["Private_Dirty"], "proportional": size["Pss"]}


def _meet(folder: Path, name: str) -> None:
    """Wait until every worker is here."""
    (folder / name).touch()
    while len(list(folder.glob(f"{name.partition('-')[0]}-*"))) < WORKERS:
        time.sleep(0.05)
