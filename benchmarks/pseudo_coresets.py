"""Claim: on Fashion-MNIST, Bayesian pseudo-coresets beat as many real images when inference starts from the prior.

All rows share one small network and one budget of steps; every choice was made on validation images, and the test set
is read once a run. Experts are trained first, and their cost stands beside. A run that is cut off goes on.
"""

from __future__ import annotations

from pathlib import Path

import attar
from attar.core.files import write_json
from attar.engine import keep_freed_memory
from attar.experts import experts
from attar.study.runner import compare
from benchmarks import RESULTS, WORK, publish, tell

NETWORK, SEEDS, DRAWS, WORKERS = "convnet-d3w32", range(2), 5, 2
METHODS = {1: ["vbpc", "bpc-cd", "bpc-fkl", "bpc-rkl", "bpc-w"], 10: ["vbpc", "bpc-cd"]}


def main() -> list[Path]:
    """Train the experts, run the study; write its JSON file, table, chart and, if it is small enough, page."""
    keep_freed_memory()
    work, folder = WORK / "pseudo_coresets", RESULTS / "pseudo_coresets"
    split = attar.load("fashion-mnist")
    store = experts(split, NETWORK, workers=WORKERS)
    for size, methods in METHODS.items():
        study = compare(
            split,
            methods,
            [size],
            folder=work,
            seeds=SEEDS,
            network=NETWORK,
            draws=DRAWS,
            experts=store.folder,
            workers=WORKERS,
            command="python -m benchmarks pseudo_coresets",
            watch=tell,
        )
    spent = [expert.cost for expert in store.manifest.experts]
    total = {
        "wall": sum(c.wall for c in spent),
        "cpu": sum(c.cpu for c in spent),
        "memory": max(c.memory for c in spent),
    }
    write_json(folder / "experts.json", {"command": store.manifest.command, "trajectories": len(store), **total})
    return publish(study, work, folder)
