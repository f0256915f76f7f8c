"""Claim: with ``MapReduce``, time grows linearly in n up to a million embeddings, and memory not beyond the data.

CRAIG needs all n² distances, so from parts of 4,000 it takes n · 4,000 of them. Embeddings with 128 coordinates, in ten
classes with given logits, so that only selection is timed. Each size runs in its own process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from attar.core.cost import measure, resident
from attar.core.files import write_json
from attar.select.run import select
from attar.study.results import machine, versions
from benchmarks import RESULTS
from benchmarks.selection import alone
from benchmarks.selection_features import embeddings

METHODS, SIZES, SIZE, PICKS, PART, THREADS = ("k-center", "craig"), (62_500, 250_000, 1_000_000), 128, 100, 4_000, 1


def main(sizes: tuple[int, ...] = SIZES) -> list[Path]:
    """Measure and write one JSON file."""
    runs = {method: {str(n): alone(_run, method, n) for n in sizes} for method in METHODS}
    path = RESULTS / "selection" / "mapreduce.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks selection_mapreduce",
            "setting": {"coordinates": SIZE, "picks": PICKS, "part": PART, "threads": THREADS},
            "methods": runs,
            "seconds_for_a_million": {
                method: {n: run["cpu"] * 1e6 / int(n) for n, run in found.items()} for method, found in runs.items()
            },
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _run(method: str, n: int) -> dict[str, Any]:
    torch.set_num_threads(THREADS)
    x = embeddings(n, SIZE)
    logits = x[:, :10].clone()  # of a last layer that uses ten coordinates
    labels = logits.add(torch.randn(logits.shape, generator=torch.Generator().manual_seed(1))).argmax(1)
    before = resident()
    with measure() as cost:
        picked = select(x, method, labels=labels, logits=logits, size=PICKS, part=PART)
    return {
        "picks": len(picked.indices),
        "wall": cost.wall,
        "cpu": cost.cpu,
        "peak_bytes": cost.memory,
        "peak_bytes_beyond_the_data": cost.memory - before,
    }
