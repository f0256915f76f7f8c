"""Claim: where features outnumber examples, inferring the last layer through n × n matrices saves time and memory.

Each form runs in its own process, at 500 examples and growing numbers of features: the n × n form that the library
uses, and the same mean and a draw through the h × h covariance. Both must give the same mean.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attar.core.cost import measure, resident
from attar.core.files import write_json
from attar.infer.head import LastLayer
from attar.study.results import machine, versions
from benchmarks import RESULTS

EXAMPLES, CLASSES, RHO, RIDGE = 500, 10, 1.0, 0.01
FEATURES = (512, 2048, 8192)
REPEATS = 3


def main() -> list[Path]:
    """Measure both forms at every number of features and write one JSON file."""
    runs = [_apart(way, h) for h in FEATURES for way in WAYS]
    means = torch.tensor([run.pop("mean") for run in runs], dtype=torch.float64).unflatten(0, (-1, len(WAYS)))
    result = {
        "command": "python -m benchmarks last_layer_vi",
        "examples": EXAMPLES,
        "classes": CLASSES,
        "dtype": "float64",
        "threads": 1,
        "repeats": REPEATS,
        "runs": runs,
        "largest_gap_between_means": float((means[:, 0] - means[:, 1]).abs().max()),
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / "last_layer_vi" / "last_layer_vi.json"
    write_json(path, result)
    return [path]


def once(way: str, h: int) -> dict[str, Any]:
    """The fastest of a few fits with one draw each, and the memory that they took beyond the features."""
    torch.set_num_threads(1)
    gen = torch.Generator().manual_seed(0)
    phi = torch.randn(EXAMPLES, h, generator=gen, dtype=torch.float64) / h**0.5
    y = torch.eye(CLASSES, dtype=torch.float64)[torch.arange(EXAMPLES) % CLASSES] - 1 / CLASSES
    before, costs = resident(), []
    for _ in range(REPEATS):
        with measure(every=0.002) as cost:
            mean, draw = WAYS[way](phi, y, gen)
        assert draw.shape == mean.shape == (h, CLASSES)
        costs.append(cost)
    return {
        "way": way,
        "features": h,
        "cpu_seconds": min(cost.cpu for cost in costs),
        "bytes_beyond_features": max(cost.memory for cost in costs) - before,
        "mean": mean[:5].flatten().tolist(),
    }


def _small(phi: Tensor, y: Tensor, gen: torch.Generator) -> tuple[Tensor, Tensor]:
    fitted = LastLayer.fit(phi, y, RHO, RIDGE)
    return fitted.mean, fitted.sample(gen)


def _large(phi: Tensor, y: Tensor, gen: torch.Generator) -> tuple[Tensor, Tensor]:
    h = phi.shape[1]
    factor = torch.linalg.cholesky(phi.T @ phi / RIDGE + torch.eye(h, dtype=phi.dtype))
    mean = torch.cholesky_solve(phi.T @ y / RIDGE, factor)
    noise = torch.randn(y.shape[1], h, generator=gen, dtype=phi.dtype).T
    return mean, mean + torch.linalg.solve_triangular(factor.T, noise, upper=True) / RHO**0.5


WAYS = {"n x n": _small, "h x h": _large}


def _apart(way: str, h: int) -> dict[str, Any]:
    code = f"import json; from benchmarks.last_layer_vi import once; print(json.dumps(once({way!r}, {h})))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(answer.stdout)
    return found
