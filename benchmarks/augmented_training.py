"""Claim: whether training with DSA pays on a coreset depends on the method and its size.

Coresets of small budgets on Fashion-MNIST, made once per method, size and seed; networks are trained on each of them
without augmentation and with DSA, from the same initialisations, and scored on validation images. Finished runs are
kept, so a benchmark that was interrupted resumes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import attar
from attar.core.cost import measure
from attar.core.files import read_json, write_json
from attar.core.streams import seed_of
from attar.data.augment import DSA
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK, tell_kept

NETWORK, SEEDS, SIZES = "convnet-d3w16", (0, 1, 2), (1, 10)
WAYS = {"plain": "none", "dsa": DSA}
#: Options and steps of each method, for at most a minute of a core.
METHODS: dict[str, tuple[dict[str, Any], int]] = {
    "uniform": ({}, 0),
    "dm": ({"batch": 64}, 100),
    "dc": ({"batch": 32, "net_steps": 10}, 40),
    "cafe": ({"batch": 32, "net_steps": 10, "query": 16}, 40),
    "lcmat-c": ({"batch": 32, "net_steps": 5}, 40),
}


def main() -> list[Path]:
    """Measure and write one JSON file."""
    torch.set_num_threads(1)
    split, work = attar.load("fashion-mnist"), WORK / "augmented_training"
    cells = [(seed, size, name) for seed in SEEDS for size in SIZES for name in METHODS]
    paths = {cell: work / "-".join(map(str, cell)) for cell in cells}
    missing = [cell for cell in cells if not paths[cell].exists()]
    for cell in missing:
        write_json(paths[cell], _run(split, *cell))
    if not missing:
        tell_kept(work)
    path = RESULTS / "augmented_training" / "augmented_training.json"
    methods = {name: {"options": options, "steps": steps} for name, (options, steps) in METHODS.items()}
    write_json(
        path,
        {
            "command": "python -m benchmarks augmented_training",
            "setting": {"data": "fashion-mnist", "network": NETWORK, "ways": WAYS, "methods": methods},
            "runs": [read_json(paths[cell]) for cell in cells],
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _run(split: attar.Split, seed: int, size: int, name: str) -> dict[str, Any]:
    options, steps = METHODS[name]
    with measure() as cost:
        descent = {"steps": steps} if steps else None
        coreset = attar.reduce(
            split, name, per_class=size, seed=seed, network=NETWORK, options=options, descent=descent
        )
    found = {}
    for way, strategy in WAYS.items():
        training = replace(coreset.training, augment=strategy)
        posterior = attar.infer(coreset, "ensemble", draws=1, seed=seed_of("augmented", seed), training=training)
        scores = attar.evaluate(posterior, split.val)
        found[way] = {"accuracy": scores.accuracy, "nll": scores.nll}
    return {"method": name, "per_class": size, "seed": seed, "cpu": cost.cpu, "scores": found}
