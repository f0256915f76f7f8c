"""Claim: from 100 random Fashion-MNIST images, every sampler gives usable predictions; here is how calibrated each is.

Every posterior starts from the prior and is scored once on the 10,000 test images; two subsets, one posterior each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attar
from attar.cost import measure
from attar.engine import keep_freed_memory
from attar.errors import AttarError
from attar.evaluate.study import machine, mean_and_error, versions
from attar.files import write_json
from benchmarks import RESULTS

SAMPLERS, SEEDS, DRAWS, NETWORK = ("ensemble", "sghmc", "last-layer-vi"), (0, 1), 4, "convnet-d3w32"
SCORES = ("accuracy", "nll", "ece", "brier")


def main() -> list[Path]:
    """Measure and write one JSON file."""
    keep_freed_memory()
    try:
        split = attar.load("fashion-mnist", download=False)
    except AttarError as error:
        raise AttarError(f"The benchmark of samplers needs Fashion-MNIST: {error}") from error
    runs = [_run(split, sampler, seed) for seed in SEEDS for sampler in SAMPLERS]
    path = RESULTS / "samplers" / "samplers.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks samplers",
            "setting": {"data": "fashion-mnist", "per_class": 10, "network": NETWORK, "draws": DRAWS, "seeds": SEEDS},
            "table": {sampler: _row([run for run in runs if run["sampler"] == sampler]) for sampler in SAMPLERS},
            "runs": runs,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _run(split: attar.Split, sampler: str, seed: int) -> dict[str, Any]:
    coreset = attar.reduce(split, "uniform", per_class=10, seed=seed, network=NETWORK)
    with measure() as cost:
        posterior = attar.infer(coreset, sampler, draws=DRAWS, seed=seed)
    scores = attar.evaluate(posterior, split.test)
    notes = {key: posterior.notes.get(key) for key in ("options", "rhat", "ess", "warnings")}
    spent = {"wall": cost.wall, "cpu": cost.cpu, "memory": cost.memory}
    return {
        "sampler": sampler,
        "seed": seed,
        **{name: getattr(scores, name) for name in SCORES},
        **spent,
        "notes": notes,
    }


def _row(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    columns = {name: mean_and_error([run[name] for run in runs]) for name in (*SCORES, "cpu")}
    return {name: {"mean": mean, "error": error} for name, (mean, error) in columns.items()}
