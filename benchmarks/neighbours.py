"""Question: how much of the objective of exact facility location does the one by neighbours lose?

Above 4,096 examples its neighbours are found approximately. The objective is the sum of distances from all examples to
their nearest pick, relative to that of picks by all distances; uniform picks are beside it. Embeddings with 64
coordinates around a thousand centres, so that clusters are smaller than the 64 neighbours, and around twenty, so that
they are larger by far; each seed draws others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attar.core.cost import measure
from attar.core.files import write_json
from attar.select.facility import FacilityLocation, Table
from attar.select.greedy import lazy
from attar.select.run import select
from attar.study.results import machine, versions
from benchmarks import RESULTS
from benchmarks.selection import alone

ROWS, SIZE, CENTRES, PICKS, SEEDS = 16_000, 64, (1000, 20), (20, 100, 1000), 3


def main(rows: int = ROWS, picks: tuple[int, ...] = PICKS, seeds: int = SEEDS) -> list[Path]:
    """Measure and write one JSON file."""
    runs = {str(centres): [alone(_run, rows, centres, picks, seed) for seed in range(seeds)] for centres in CENTRES}
    path = RESULTS / "selection" / "neighbours.json"
    setting = {"rows": rows, "coordinates": SIZE, "picks": list(picks), "seeds": seeds}
    write_json(
        path,
        {
            "command": "python -m benchmarks neighbours",
            "setting": {**setting, "threads": 1},
            "runs": runs,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _run(rows: int, centres: int, picks: tuple[int, ...], seed: int) -> dict[str, Any]:
    """The relative objective of every way for every number of picks, and the processor seconds of the most picks."""
    torch.set_num_threads(1)
    x = _embeddings(rows, centres, seed)
    most = max(picks)  # fewer picks are the first of these
    found: dict[str, Tensor] = {}
    with measure() as exact:
        found["exact"] = lazy(FacilityLocation(Table(torch.cdist(x, x))), most).indices
    with measure() as near:
        found["neighbours"] = select(x, "facility-neighbours", size=most).indices
    found["uniform"] = select(x, "uniform", size=most, seed=seed).indices
    objective = {name: {str(k): _objective(x, chosen[:k]) for k in picks} for name, chosen in found.items()}
    relative = {
        name: {k: value / objective["exact"][k] for k, value in values.items()} for name, values in objective.items()
    }
    return {"seed": seed, "relative": relative, "cpu": {"exact": exact.cpu, "neighbours": near.cpu}}


def _embeddings(rows: int, centres: int, seed: int) -> Tensor:
    rng = np.random.default_rng(seed)
    middles = rng.standard_normal((centres, SIZE), dtype=np.float32)
    noise = 0.5 * rng.standard_normal((rows, SIZE), dtype=np.float32)
    return torch.from_numpy(middles[rng.integers(0, centres, rows)] + noise)


def _objective(x: Tensor, chosen: Tensor) -> float:
    return float(sum(torch.cdist(some, x[chosen]).amin(1).sum() for some in x.split(4096)))
