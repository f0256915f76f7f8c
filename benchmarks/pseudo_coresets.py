"""Claim: on Fashion-MNIST, Bayesian pseudo-coresets beat as many real images when inference starts from the prior.

All rows share one small network and one budget of steps; every choice was made on validation images, and the test set
is read once a run. Experts are trained first, and their cost stands beside. A run that is cut off goes on.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import attar
from attar.engine import keep_freed_memory
from attar.evaluate import Run
from attar.evaluate.protocol import Job, compare
from attar.experts import experts
from attar.files import write_json, write_text
from attar.report import accuracy_chart, write
from benchmarks import RESULTS, WORK

NETWORK, SEEDS, DRAWS, WORKERS = "convnet-d3w32", range(2), 5, 2
METHODS = {1: ["vbpc", "bpc-cd", "bpc-fkl", "bpc-rkl", "bpc-w"], 10: ["vbpc", "bpc-cd"]}
LARGEST = 500_000  #: bytes of a page that may be committed


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
            watch=_tell,
        )
    study.save(folder / "study.json")
    spent = [expert.cost for expert in store.manifest.experts]
    total = {
        "wall": sum(c.wall for c in spent),
        "cpu": sum(c.cpu for c in spent),
        "memory": max(c.memory for c in spent),
    }
    write_json(folder / "experts.json", {"command": store.manifest.command, "trajectories": len(store), **total})
    write_text(folder / "table.csv", study.csv())
    write_text(folder / "accuracy.svg", accuracy_chart(study))
    page = write(study, work, folder / "report.html")
    if page.stat().st_size > LARGEST:
        page.unlink()
    shutil.rmtree(work)  # else the next call would only copy what this one found
    return sorted(folder.iterdir())


def _tell(job: Job, runs: list[Run]) -> None:
    sys.stderr.write(f"{job.key}: {runs[0].test.accuracy:.1%}\n")
