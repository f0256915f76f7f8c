"""Question: which stretch of the experts' training should mtt, bpc-w, bpc-fkl and bpc-cd learn from?

Experts have checkpoints within their first epoch, so that starts and targets can be a tenth of it apart. For every
method, settings of start, horizon and learning rate are tried with one seed at one image per class; the best is then
compared with what the defaults were before, with other seeds that pair the two; bpc-cd, the fastest, also for all
its default updates and at ten images per class. All runs that are compared take about the same time: those with fewer
steps on the examples update them more often. Fashion-MNIST, validation images only. Finished runs are kept, so an
interrupted benchmark resumes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch

import attar
from attar.assess.statistics import Paired
from attar.core.cost import measure
from attar.core.files import read_json, write_json
from attar.engine import keep_freed_memory
from attar.experts import SMALL, Trajectories, experts
from attar.study.cell import evaluation_seed
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK

NAME, DATA, NETWORK, BEFORE = "tune_experts", "fashion-mnist", "convnet-d3w16", "before"
TRIED, TRAINING = 10, 100
SCHEDULE = replace(SMALL, trajectories=3)
RESULT = RESULTS / NAME / "tune_experts.json"
#: Images per class, updates of the examples with the settings before, and seeds. Settings are tried with the first.
RUNS = {
    "bpc-cd": [(1, 100, 3), (1, 200, 3), (10, 20, 3)],
    "bpc-fkl": [(1, 40, 3)],
    "bpc-w": [(1, 20, 5)],
    "mtt": [(1, 12, 3)],
}
Change = tuple[dict[str, Any], dict[str, Any]]  #: of a method's options and of its optimiser settings
BASE: dict[str, Change] = {
    "bpc-cd": ({"min_epoch": 1.0, "max_epoch": 1.0}, {"lr": 0.02}),
    "bpc-fkl": ({"ahead": 0.2}, {"lr": 0.02}),
    "bpc-w": ({"ahead": 1.0, "net_steps": 30}, {"lr": 0.02}),
    "mtt": ({"ahead": 1.0, "net_steps": 50}, {"lr": 0.03}),
}
FASTER: dict[str, Any] = {"lr": 0.05}
MATCHING: dict[str, Change] = {
    "0.2 ahead, 10 steps": ({"ahead": 0.2, "net_steps": 10}, {}),
    "0.2 ahead, 10 steps, lr 0.05": ({"ahead": 0.2, "net_steps": 10}, FASTER),
    "lr 0.05": ({}, FASTER),
}
GRID: dict[str, dict[str, Change]] = {
    "bpc-cd": {
        "from 0.2": ({"min_epoch": 0.2, "max_epoch": 0.2}, {}),
        "from 0.5": ({"min_epoch": 0.5, "max_epoch": 0.5}, {}),
        "from 0.2 to 1": ({"min_epoch": 0.2}, {}),
        "from 0.2, lr 0.05": ({"min_epoch": 0.2, "max_epoch": 0.2}, FASTER),
        "lr 0.05": ({}, FASTER),
    },
    "bpc-fkl": {
        "0.1 ahead": ({"ahead": 0.1}, {}),
        "0.5 ahead": ({"ahead": 0.5}, {}),
        "lr 0.05": ({}, FASTER),
    },
    "bpc-w": MATCHING,
    "mtt": MATCHING,
}


def main() -> list[Path]:
    """Do what is not done yet, and write one JSON file."""
    torch.set_num_threads(1)
    keep_freed_memory()
    split = attar.load(DATA)
    store = experts(split, NETWORK, SCHEDULE, root=WORK / NAME / "experts")
    tried = {m: {s: run(split, store, m, s, *RUNS[m][0][:2], TRIED) for s in (BEFORE, *GRID[m])} for m in GRID}
    best = {method: max(runs, key=lambda name: runs[name]["accuracy"]) for method, runs in tried.items()}
    compared = [
        _compared(split, store, method, chosen, size, updates, seeds)
        for method, chosen in best.items()
        if chosen != BEFORE
        for size, updates, seeds in RUNS[method]
    ]
    setting = {"data": DATA, "network": NETWORK, "experts": SCHEDULE.trajectories, "training_steps": TRAINING}
    about = {"runs": RUNS, "tried_seed": TRIED, "base": BASE, "grid": GRID, "scores": "validation"}
    write_json(
        RESULT,
        {
            "command": f"python -m benchmarks {NAME}",
            "setting": setting | about,
            "tried": tried,
            "best": best,
            "compared": compared,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [RESULT]


def _compared(
    split: attar.Split, store: Trajectories, method: str, chosen: str, size: int, updates: int, seeds: int
) -> dict[str, Any]:
    """The chosen setting and the one before by seed, and the paired difference in points of accuracy."""
    runs = {
        name: {seed: run(split, store, method, name, size, updates, seed) for seed in range(seeds)}
        for name in (BEFORE, chosen)
    }
    ours, theirs = ({s: 100 * found["accuracy"] for s, found in runs[name].items()} for name in (chosen, BEFORE))
    gap = Paired.of(ours, theirs)
    assert gap is not None
    means = {"mean": mean(ours.values()), "before": mean(theirs.values())}
    about = {"method": method, "per_class": size, "updates": updates, "chosen": chosen}
    return {**about, **means, "difference": gap.difference, "half": gap.half, "runs": runs}


def run(
    split: attar.Split, store: Trajectories, method: str, name: str, size: int, updates: int, seed: int
) -> dict[str, Any]:
    """Validation scores of one coreset with its recommended inference, from its file if there is one."""
    path = WORK / NAME / f"{method}-{size}-{updates}-{name.replace(' ', '-')}-{seed}.json"
    if not path.exists():
        base, change = BASE[method], GRID[method].get(name, ({}, {}))
        options, descent = base[0] | change[0], base[1] | change[1]
        steps = updates  # more, if each has fewer steps on the examples
        if "net_steps" in options:
            steps = updates * base[0]["net_steps"] // options["net_steps"]
        with measure() as cost:
            coreset = attar.reduce(
                split,
                method,
                per_class=size,
                seed=seed,
                network=NETWORK,
                options=options,
                descent={**descent, "steps": steps},
                training=attar.Training(steps=TRAINING),
                experts=store,
            )
        scores = attar.evaluate(attar.infer(coreset, draws=1, seed=evaluation_seed(seed)), split.val)
        write_json(path, {"accuracy": scores.accuracy, "nll": scores.nll, "steps": steps, "cpu": cost.cpu})
    kept: dict[str, Any] = read_json(path)
    return kept
