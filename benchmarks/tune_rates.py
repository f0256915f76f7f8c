"""Question: which learning rate suits bpc-cd and bpc-w at ten images per class?

The defaults were chosen at one image per class, which must change much; ten start closer to the goal. Every method runs
with its other defaults and few steps; random real images, from which all of them start, are the mark to beat. All rows
are paired by seed. Fashion-MNIST, validation images only. Finished runs are kept, so an interrupted benchmark resumes.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

import torch

import attar
from attar.assess.statistics import Paired
from attar.core.cost import measure
from attar.core.files import read_json, write_json
from attar.engine import keep_freed_memory
from attar.experts import Trajectories, experts
from attar.study.cell import evaluation_seed
from attar.study.compared import RANDOM
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK
from benchmarks.tune_experts import DATA, NETWORK, SCHEDULE, TRAINING

NAME, PER_CLASS, SEEDS = "tune_rates", 10, range(5)
RATES, UPDATES = (0.05, 0.02), {"bpc-cd": 50, "bpc-w": 30}
RESULT = RESULTS / NAME / "tune_rates.json"


def main() -> list[Path]:
    """Do what is not done yet, and write one JSON file."""
    torch.set_num_threads(1)
    keep_freed_memory()
    split = attar.load(DATA)
    store = experts(split, NETWORK, SCHEDULE, root=WORK / NAME / "experts")
    rows: dict[tuple[str, float | None], dict[int, dict[str, Any]]] = {}
    for method, rate in [(RANDOM, None), *((method, rate) for method in UPDATES for rate in RATES)]:
        rows[method, rate] = {seed: run(split, store, method, rate, seed) for seed in SEEDS}
    setting = {"data": DATA, "network": NETWORK, "per_class": PER_CLASS, "experts": SCHEDULE.trajectories}
    about = {"updates": UPDATES, "training_steps": TRAINING, "seeds": list(SEEDS), "scores": "validation"}
    found = {"setting": setting | about, "rows": table(rows), "versions": versions(), "machine": machine()}
    write_json(RESULT, {"command": f"python -m benchmarks {NAME}", **found})
    return [RESULT]


def table(rows: dict[tuple[str, float | None], dict[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Every row with its mean accuracy, and paired differences in points from the first rate and from random images."""
    found = []
    for (method, rate), runs in rows.items():
        own = {seed: 100 * run["accuracy"] for seed, run in runs.items()}
        row: dict[str, Any] = {"method": method, "lr": rate, "accuracy": mean(own.values()), "runs": runs}
        against = {"random": (RANDOM, None)} | ({"first": (method, RATES[0])} if rate not in (None, RATES[0]) else {})
        for name, key in against.items():
            if key != (method, rate):
                gap = Paired.of(own, {seed: 100 * run["accuracy"] for seed, run in rows[key].items()})
                assert gap is not None
                row[name] = {"difference": gap.difference, "half": gap.half}
        found.append(row)
    return found


def run(split: attar.Split, store: Trajectories, method: str, rate: float | None, seed: int) -> dict[str, Any]:
    """Validation scores of one coreset with its recommended inference, from its file if there is one."""
    path = WORK / NAME / f"{method}-{rate}-{seed}.json"
    if not path.exists():
        learnt = rate is not None
        with measure() as cost:
            coreset = attar.reduce(
                split,
                method,
                per_class=PER_CLASS,
                seed=seed,
                network=NETWORK,
                descent={"lr": rate, "steps": UPDATES[method]} if learnt else None,
                training=attar.Training(steps=TRAINING),
                experts=store if learnt else None,
            )
        posterior = attar.infer(coreset, draws=1, seed=evaluation_seed(seed))
        scores = attar.evaluate(posterior, split.val)
        write_json(path, {"accuracy": scores.accuracy, "nll": scores.nll, "cpu": cost.cpu})
    kept: dict[str, Any] = read_json(path)
    return kept
