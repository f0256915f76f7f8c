"""Question: which options of vbpc improve it, each alone against the same baseline, on validation images only?

A run is a scaled-down copy of the defaults: fewer steps, a smaller pool and shorter lives of its networks in the same
proportion. The seeds of a lever and of the baseline are the same, so that differences are paired. The learning rate is
also compared in runs of the default length. Levers of inference use the coresets of the baseline. The test set is never
read. An interrupted benchmark resumes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import attar
from attar.assess.statistics import Paired
from attar.core.cost import measure
from attar.core.files import write_json
from attar.coreset import Coreset
from attar.data import Split
from attar.engine import keep_freed_memory
from attar.study.cell import evaluation_seed
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK

NAME = "vbpc_levers"
SEEDS, STEPS, DRAWS, TRAINING = range(5), 200, 1, 100
NETWORK, BASE = "convnet-d3w16", "baseline"
SMALL = {"pool": 4, "net_steps": 25, "batch": 256, "staggered": False}  # of every run
SCORES = ("accuracy", "nll", "ece")
RESULT = RESULTS / NAME / "levers.json"


@dataclass(frozen=True)
class Lever:
    """What a row changes."""

    options: Mapping[str, Any] = field(default_factory=dict)
    method: str = "vbpc"
    network: str = NETWORK
    scaling: str = "standard"
    descent: Mapping[str, Any] = field(default_factory=dict)
    against: str = BASE  #: the row that it is compared with


@dataclass(frozen=True)
class Inference:
    """What a row changes in inference from the coresets of the baseline."""

    options: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)


LEVERS = {
    BASE: Lever(),
    "lr-0.03": Lever(descent={"lr": 0.03}),
    "lr-0.1": Lever(descent={"lr": 0.1}),
    "steps-1000": Lever(descent={"steps": 1000}),
    "steps-2000": Lever(descent={"steps": 2000}),
    "steps-2000-lr-0.03": Lever(descent={"steps": 2000, "lr": 0.03}, against="steps-2000"),
    "staggered": Lever({"staggered": True}),
    "net-batch-half": Lever(),  # of the examples, whose number it depends on
    "label-scale-2": Lever({"label_scale": 2.0}),
    "flips": Lever({"flips": True}),
    "width-8x16x32": Lever(network="convnet-d3w8x16x32"),
    "branches-4": Lever(network="convnet-d3w8b4"),  # inner convolutions have as many weights as the baseline
    "net-steps-5": Lever({"net_steps": 5}),
    "branches-4-net-steps-5": Lever({"net_steps": 5}, network="convnet-d3w8b4"),
    "frepo": Lever(method="frepo"),
    "batch-1024": Lever({"batch": 1024}),
}
POOL = {name: LEVERS[name] for name in (BASE, "net-steps-5", "branches-4", "branches-4-net-steps-5")}
COLOUR = {**{name: LEVERS[name] for name in (BASE, "lr-0.03", "lr-0.1", "flips")}, "zca": Lever(scaling="zca")}
LARGER = {name: lever for name, lever in LEVERS.items() if not name.startswith(("batch", "steps"))}
DIGITS = {**POOL, **{name: LEVERS[name] for name in ("lr-0.03", "lr-0.1")}}
GRID = {
    ("mnist", 1): DIGITS,
    ("fashion-mnist", 1): LEVERS,
    ("cifar10", 1): POOL,
    ("cifar10", 10): COLOUR,
    ("fashion-mnist", 10): LARGER,
}
INFERENCE = {
    "average-0.95": Inference({"average": 0.95}),
    "augment-crop-rotate": Inference(training={"augment": "crop-rotate"}),
}


def main() -> list[Path]:
    """Do what is not done yet, and write one JSON file of all runs and paired differences after every run."""
    keep_freed_memory()
    runs: list[dict[str, Any]] = []
    for (data, size), levers in GRID.items():
        for name in levers:
            for seed in SEEDS:
                runs += _kept(data, size, name, seed)
                publish(runs)
    return [RESULT]


def publish(runs: list[dict[str, Any]]) -> None:
    """Write the result: setting, differences and runs."""
    shared = {"network": NETWORK, "steps": STEPS, "draws": DRAWS, "training_steps": TRAINING, "options": SMALL}
    result = {
        "command": f"python -m benchmarks {NAME}",
        "setting": {**shared, "scores": "validation"},
        "differences": differences(runs),
        "runs": runs,
        "versions": versions(),
        "machine": machine(),
    }
    write_json(RESULT, result)


def differences(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every row: its mean scores, and their mean paired difference from another row with half its 95 % interval."""
    by: dict[tuple[str, int, str], dict[int, dict[str, Any]]] = {}
    for run in runs:
        by.setdefault((run["data"], run["per_class"], run["lever"]), {})[run["seed"]] = run
    found = []
    for (data, size, lever), own in by.items():
        against = LEVERS.get(lever, Lever()).against
        row: dict[str, Any] = {"data": data, "per_class": size, "lever": lever, "seeds": len(own), "against": against}
        for score in SCORES:
            ours, theirs = ({s: r[score] for s, r in some.items()} for some in (own, by[data, size, against]))
            gap = Paired.of(ours, theirs)
            assert gap is not None
            row[score] = {"mean": mean(ours.values()), "difference": gap.difference, "half": gap.half}
        found.append(row)
    return found


def _kept(data: str, size: int, name: str, seed: int) -> list[dict[str, Any]]:
    """The scores of one coreset, from its file if there is one."""
    path = WORK / NAME / f"{data}-{size}-{name}-{seed}.json"
    if not path.exists():
        write_json(path, _runs(data, size, name, seed))
    kept: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def _runs(data: str, size: int, name: str, seed: int) -> list[dict[str, Any]]:
    lever = GRID[data, size][name]
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
            descent={"steps": STEPS, **lever.descent},
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
