"""Claim: which options of vbpc pay, each alone against the same baseline, on validation images only.

A run is a scaled-down copy of the defaults: fewer steps, a smaller pool and shorter lives of its networks in the same
proportion. The seeds of a lever and of the baseline are the same, so that differences are paired. Levers of inference
use the coresets of the baseline. The test set is never read. An interrupted benchmark resumes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import attar
from attar.assess.statistics import t_interval
from attar.core.cost import measure
from attar.core.files import write_json
from attar.coreset import Coreset
from attar.data import Split
from attar.engine import keep_freed_memory
from attar.study.cell import evaluation_seed
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK

NAME = "vbpc_levers"
SEEDS, STEPS, DRAWS, TRAINING = range(3), 200, 1, 100
NETWORK, BASE = "convnet-d3w16", "baseline"
SMALL = {"pool": 4, "net_steps": 25, "batch": 256, "staggered": False}  # of every run
SIZES = {"fashion-mnist": (1, 10), "cifar10": (10,)}


@dataclass(frozen=True)
class Lever:
    """What a row changes."""

    options: Mapping[str, Any] = field(default_factory=dict)
    method: str = "vbpc"
    network: str = NETWORK
    steps: int = STEPS
    scaling: str = "standard"


@dataclass(frozen=True)
class Inference:
    """What a row changes in inference from the coresets of the baseline."""

    options: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)


LEVERS = {
    BASE: Lever(),
    "staggered": Lever({"staggered": True}),
    "net-batch-half": Lever(),  # of the examples, whose number it depends on
    "flips": Lever({"flips": True}),
    "batch-1024": Lever({"batch": 1024}),
    "label-scale-2": Lever({"label_scale": 2.0}),
    "width-8x16x32": Lever(network="convnet-d3w8x16x32"),
    "steps-x3": Lever(steps=3 * STEPS),
    "frepo": Lever(method="frepo"),
}
COLOUR = {
    BASE: Lever(),
    "zca": Lever(scaling="zca"),
    "flips": LEVERS["flips"],
    "width-8x16x32": LEVERS["width-8x16x32"],
}
INFERENCE = {
    "average-0.95": Inference({"average": 0.95}),
    "augment-crop-rotate": Inference(training={"augment": "crop-rotate"}),
}


def main() -> list[Path]:
    """Do what is not done yet, and write one JSON file of all runs and paired differences."""
    keep_freed_memory()
    runs = [run for seed in SEEDS for data, size, name in _rows() for run in _kept(data, size, name, seed)]
    shared = {"network": NETWORK, "steps": STEPS, "draws": DRAWS, "training_steps": TRAINING, "options": SMALL}
    result = {
        "command": f"python -m benchmarks {NAME}",
        "setting": {**shared, "seeds": list(SEEDS), "scores": "validation"},
        "differences": differences(runs),
        "runs": runs,
        "versions": versions(),
        "machine": machine(),
    }
    write_json(RESULTS / NAME / "levers.json", result)
    return [RESULTS / NAME / "levers.json"]


def differences(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean paired difference of every lever from the baseline, with the half width of its 95 % interval."""
    scores = ("accuracy", "nll")
    by = {(run["data"], run["per_class"], run["lever"], run["seed"]): run for run in runs}
    rows = dict.fromkeys((run["data"], run["per_class"], run["lever"]) for run in runs)
    found = []
    for data, size, lever in rows:
        seeds = [seed for *row, seed in by if tuple(row) == (data, size, lever)]
        row: dict[str, Any] = {"data": data, "per_class": size, "lever": lever, "seeds": len(seeds)}
        for score in scores:
            own = [by[data, size, lever, seed][score] for seed in seeds]
            gaps = [value - by[data, size, BASE, seed][score] for value, seed in zip(own, seeds, strict=True)]
            mean, half = t_interval(gaps)
            row[score] = {"mean": sum(own) / len(own), "difference": mean, "half": half}
        found.append(row)
    return found


def _rows() -> Iterator[tuple[str, int, str]]:
    for data, sizes in SIZES.items():
        for size in sizes:
            for name in LEVERS if data == "fashion-mnist" else COLOUR:
                yield data, size, name


def _kept(data: str, size: int, name: str, seed: int) -> list[dict[str, Any]]:
    """The scores of one coreset, from its file if there is one."""
    path = WORK / NAME / f"{data}-{size}-{name}-{seed}.json"
    if not path.exists():
        write_json(path, _runs(data, size, name, seed))
    kept: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def _runs(data: str, size: int, name: str, seed: int) -> list[dict[str, Any]]:
    lever = (LEVERS if data == "fashion-mnist" else COLOUR)[name]
    split = _loaded(data, lever.scaling)
    options = {**SMALL, **lever.options}
    if name == "net-batch-half":
        options["net_batch"] = size * split.classes // 2
    with measure() as cost:
        coreset = attar.reduce(
            split,
            lever.method,
            per_class=size,
            seed=seed,
            network=lever.network,
            options=options,
            descent={"steps": lever.steps},
            training=attar.Training(steps=TRAINING),
        )
    about = {"data": data, "per_class": size, "seed": seed, "cpu": cost.cpu}
    rows = {name: Inference(), **(INFERENCE if (data, name) == ("fashion-mnist", BASE) else {})}
    return [{**about, "lever": row, **_scores(coreset, split, way, seed)} for row, way in rows.items()]


def _scores(coreset: Coreset, split: Split, way: Inference, seed: int) -> dict[str, float]:
    budget = replace(coreset.training, **way.training)
    own = coreset.recipe.sampler
    posterior = attar.infer(coreset, own, draws=DRAWS, seed=evaluation_seed(seed), training=budget, options=way.options)
    found = attar.evaluate(posterior, split.val)
    return {"accuracy": found.accuracy, "nll": found.nll, "ece": found.ece}


@cache
def _loaded(data: str, scaling: str) -> Split:
    return attar.load(data, scaling=scaling)
