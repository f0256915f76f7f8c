"""Claim: k-center and herding pick 1 % of 60,000 embeddings with 2,048 coordinates in under 2 GB, with no n×n matrix.

The embeddings are synthetic, 491 MB in many clusters of different sizes. Both methods select from all of them at once,
without classes, which is the hardest case. Each runs in its own process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attar.core.cost import measure, resident
from attar.core.files import write_json
from attar.select.run import select
from attar.study.results import machine, versions
from benchmarks import RESULTS
from benchmarks.selection import alone

METHODS, N, SIZE, FRACTION, THREADS = ("k-center", "herding"), 60_000, 2_048, 0.01, 2


def main(n: int = N, size: int = SIZE) -> list[Path]:
    """Measure and write one JSON file."""
    runs = {method: alone(_run, method, n, size) for method in METHODS}
    path = RESULTS / "selection" / "features.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks selection_features",
            "setting": {"examples": n, "coordinates": size, "fraction": FRACTION, "threads": THREADS},
            "methods": runs,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def embeddings(n: int, size: int, clusters: int = 200) -> Tensor:
    """Points around many centres, made row block by row block."""
    gen = torch.Generator().manual_seed(0)
    centres = 3 * torch.randn(clusters, size, generator=gen)
    x = torch.empty(n, size)
    for rows in x.split(4096):
        which = (torch.rand(len(rows), generator=gen).square() * clusters).long()
        rows.normal_(generator=gen).add_(centres[which])
    return x


def _run(method: str, n: int, size: int) -> dict[str, Any]:
    torch.set_num_threads(THREADS)
    x = embeddings(n, size)
    before = resident()
    with measure() as cost:
        picked = select(x, method, fraction=FRACTION)
    return {
        "picks": len(picked.indices),
        "wall": cost.wall,
        "cpu": cost.cpu,
        "peak_bytes": cost.memory,
        "bytes_before": before,
        "last_score": float(picked.scores[-1]),
    }
