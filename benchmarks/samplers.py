"""Claim: from 100 random Fashion-MNIST images, every sampler gives usable predictions; here is how calibrated each is.

Every posterior starts from the prior and is scored once on the 10,000 test images; three subsets, one posterior each.
Samplers have their default options, so no option was tuned on the test images. Finished runs are kept, so a benchmark
that was interrupted resumes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attar
from attar.assess.metrics import mean_and_error
from attar.core.cost import measure
from attar.core.errors import AttarError
from attar.core.files import read_json, write_json
from attar.engine import keep_freed_memory
from attar.infer.diagnose import together
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK, tell_kept

SAMPLERS = ("ensemble", "sghmc", "last-layer-vi", "laplace")
SEEDS, DRAWS, NETWORK = (0, 1, 2), 4, "convnet-d3w32"
SCORES = ("accuracy", "nll", "ece", "brier")


def main() -> list[Path]:
    """Measure and write one JSON file."""
    keep_freed_memory()
    try:
        split = attar.load("fashion-mnist", download=False)
    except AttarError as error:
        raise AttarError(f"The benchmark of samplers needs Fashion-MNIST: {error}") from error
    runs = measured(split, WORK / "samplers")
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


def measured(split: attar.Split, work: Path) -> list[dict[str, Any]]:
    """Every run; those that an earlier call left in the work folder are read from there."""
    runs = [(sampler, seed) for seed in SEEDS for sampler in SAMPLERS]
    paths = {(sampler, seed): work / f"{sampler}-{NETWORK}-{DRAWS}-{seed}.json" for sampler, seed in runs}
    missing = [run for run in runs if not paths[run].exists()]
    for run in missing:
        write_json(paths[run], _run(split, *run))
    if not missing:
        tell_kept(work)
    return [read_json(paths[run]) for run in runs]


def _run(split: attar.Split, sampler: str, seed: int) -> dict[str, Any]:
    coreset = attar.reduce(split, "uniform", per_class=10, seed=seed, network=NETWORK)
    with measure() as cost:
        posterior = attar.infer(coreset, sampler, draws=DRAWS, seed=seed)
    scores = attar.evaluate(posterior, split.test)
    notes = {key: posterior.notes.get(key) for key in ("options", "temperature", "rhat", "ess", "warnings")}
    spent = {"wall": cost.wall, "cpu": cost.cpu, "memory": cost.memory}
    return {
        "sampler": sampler,
        "seed": seed,
        **{name: getattr(scores, name) for name in SCORES},
        **spent,
        "notes": notes,
    }


def _row(runs: list[dict[str, Any]]) -> dict[str, dict[str, float | None]]:
    columns = {name: mean_and_error([run[name] for run in runs]) for name in (*SCORES, "cpu")}
    row: dict[str, dict[str, float | None]] = {
        name: {"mean": mean, "error": error} for name, (mean, error) in columns.items()
    }
    chains = together(run["notes"] for run in runs)
    return row | ({"chains": chains} if chains else {})
