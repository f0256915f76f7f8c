"""Claim: loading takes at most twice the time of a bare numpy read, and at most 1.2 times its float32 bytes at peak.

CIFAR-10 (plain bytes) and Fashion-MNIST (gzip), from disk to float32 tensors. The bare read does no more than that:
bytes, labels, pixels in [0, 1]. The library also compares files with their published sums, checks labels and shapes,
cuts a validation set, and standardises. Rounds alternate, each in a process of its own with one thread; processor
seconds are counted, and the fastest counts. The peak is that of the process above its memory before.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attar
from attar.core.cost import measure, resident
from attar.core.files import write_json
from attar.study.results import machine, versions
from benchmarks import RESULTS

ROUNDS, WAYS, NAMES = 5, ("numpy", "attar"), ("cifar10", "fashion-mnist")


def main(rounds: int = ROUNDS) -> list[Path]:
    """Measure and write one JSON file."""
    path = RESULTS / "loading" / "loading.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks loading",
            "setting": {"rounds": rounds, "threads": 1},
            "data": {name: _compare(name, rounds) for name in NAMES},
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _compare(name: str, rounds: int) -> dict[str, Any]:
    runs = [{way: _in_process(way, name) for way in WAYS} for _ in range(rounds)]
    best = {way: min(run[way]["cpu"] for run in runs) for way in WAYS}
    peak = {way: max(run[way]["peak"] / run[way]["bytes"] for run in runs) for way in WAYS}
    return {
        "times_longer_than_numpy": best["attar"] / best["numpy"],
        "peak_over_float32_bytes": peak,
        "cpu_seconds": {way: [run[way]["cpu"] for run in runs] for way in WAYS},
    }


def work(way: str, name: str) -> dict[str, float]:
    """Processor seconds of one load, its peak above the memory before, and the float32 bytes that it gives."""
    attar.load("digits")  # everything is imported
    before = resident()
    with measure(every=0.002) as cost:
        start = time.process_time()
        held = _ours(name) if way == "attar" else _bare(name)
        seconds = time.process_time() - start
    return {"cpu": seconds, "peak": cost.memory - before, "bytes": sum(x.nbytes for x in held)}


def _ours(name: str) -> list[NDArray[np.float32]]:
    split = attar.load(name)
    return [part.x.numpy() for part in (split.train, split.val, split.test)]


def _bare(name: str) -> list[NDArray[np.float32]]:
    folder = Path(os.environ.get("ATTAR_DATA", "~/.cache/attar/data")).expanduser() / name
    if name == "cifar10":
        folder = folder / "cifar-10-batches-bin"
        files = [[f"data_batch_{number}.bin" for number in range(1, 6)], ["test_batch.bin"]]
        records = [[np.fromfile(folder / file, np.uint8).reshape(-1, 3073) for file in part] for part in files]
        pixels = [np.concatenate([some[:, 1:] for some in part]) for part in records]
        _ = [np.concatenate([some[:, 0] for some in part]).astype(np.int64) for part in records]
        return [_scaled(x.reshape(-1, 3, 32, 32)) for x in pixels]
    images = [_unpacked(folder / f"{part}-images-idx3-ubyte.gz")[16:] for part in ("train", "t10k")]
    _ = [_unpacked(folder / f"{part}-labels-idx1-ubyte.gz")[8:].astype(np.int64) for part in ("train", "t10k")]
    return [_scaled(x.reshape(-1, 1, 28, 28)) for x in images]


def _unpacked(path: Path) -> NDArray[np.uint8]:
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8)


def _scaled(x: NDArray[np.uint8]) -> NDArray[np.float32]:
    out = x.astype(np.float32)
    out /= 255
    return out


def _in_process(way: str, name: str) -> dict[str, Any]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    code = f"import json; from benchmarks.loading import work; print(json.dumps(work({way!r}, {name!r})))"
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    run: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return run
