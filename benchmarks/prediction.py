"""Claim: the averaged prediction of 50 draws over 10,000 images stays within 1.5 GB, however many draws there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import attar
from attar.core.cost import measure, resident
from attar.core.files import write_json
from attar.data import Spec
from attar.engine import keep_freed_memory
from attar.infer import Draws
from attar.study.results import machine, versions
from benchmarks import RESULTS

IMAGES, DRAWS, NETWORK, LIMIT = 10_000, (5, 50), "convnet-d3w32", 1.5e9


def main() -> list[Path]:
    """Measure and write one JSON file."""
    keep_freed_memory()
    gen = torch.Generator().manual_seed(0)
    network = attar.network(NETWORK, (1, 28, 28), 10)
    theta = torch.stack([network.init(gen) for _ in range(max(DRAWS))])
    x = torch.randn(IMAGES, 1, 28, 28, generator=gen)
    spec = Spec.of(network.shape, network.classes)
    path = RESULTS / "prediction" / "prediction.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks prediction",
            "setting": {"images": IMAGES, "network": NETWORK, "limit_bytes": LIMIT},
            "runs": [_run(Draws(network, theta[:draws], spec), x) for draws in DRAWS],
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _run(posterior: Draws, x: torch.Tensor) -> dict[str, Any]:
    before = resident()
    with measure() as cost:
        posterior.predict(x)
    if cost.memory > LIMIT:
        raise AssertionError(f"{len(posterior.theta)} draws took {cost.memory / 1e9:.2f} GB")
    return {"draws": len(posterior.theta), "wall": cost.wall, "cpu": cost.cpu, "peak": cost.memory, "before": before}
