"""Claim: images learnt with one kernel beat random images with every other, fully connected or convolutional.

Ten images per class of Fashion-MNIST are learnt by ``kip`` with each kernel or several in turn, all in the same few
steps, and evaluated by kernel ridge regression with each kernel on validation images. The test set is not used.
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

import torch

import attar
from attar.assess.metrics import mean_and_error
from attar.condense.kernels import FIXED, KernelRidge
from attar.core.cost import measure
from attar.core.files import write_json, write_text
from attar.coreset import Coreset
from attar.data import Data, Split
from attar.engine import keep_freed_memory
from attar.study.results import machine, versions
from benchmarks import RESULTS

NAME, DATA, RANDOM = "kernel_transfer", "fashion-mnist", "random images"
LEARNT = (RANDOM, "rbf", "nngp1", "ntk1", "cntk1", "cntk2", "ntk1-ntk2-cntk1")
EVALUATED = ("rbf", "nngp1", "ntk1", "ntk2", "cntk1", "cntk2")
PER_CLASS, SEEDS, RIDGE, HELD = 10, (0, 1, 2), 1e-6, 30  # validation images per class
BATCH, DESCENT = 100, {"steps": 16, "lr": 0.05}


def main() -> list[Path]:
    """Learn, evaluate, and write one JSON file and its table."""
    keep_freed_memory()
    torch.set_num_threads(1)
    split = attar.load(DATA)
    held = split.val.sample_per_class(HELD, torch.Generator().manual_seed(0))
    rows = [measured(split, held, kernels) for kernels in LEARNT]
    setting = {"data": DATA, "per_class": PER_CLASS, "seeds": SEEDS, "ridge": RIDGE, "validation_images": len(held)}
    path, table = RESULTS / NAME / f"{NAME}.json", RESULTS / NAME / "transfer.csv"
    write_json(
        path,
        {
            "command": f"python -m benchmarks {NAME}",
            "setting": {**setting, "real_batch": BATCH, "descent": DESCENT},
            "evaluated": EVALUATED,
            "rows": rows,
            "versions": versions(),
            "machine": machine(),
        },
    )
    write_text(table, _csv(rows))
    return [path, table]


def measured(split: Split, held: Data, kernels: str) -> dict[str, Any]:
    """Accuracy with each kernel on coresets learnt with these."""
    found: dict[str, list[float]] = {name: [] for name in EVALUATED}
    spent = []
    for seed in SEEDS:
        with measure() as cost:
            data = learnt(split, kernels, seed).data
        spent.append(cost.cpu)
        sys.stderr.write(f"{kernels}, seed {seed}: {cost.cpu:.0f} s\n")
        for name in EVALUATED:
            said = KernelRidge.fit(data, FIXED[name], RIDGE, held.classes).targets(held.x)
            found[name].append(float((said.argmax(1) == held.hard).double().mean()))
    means = {name: dict(zip(("mean", "error"), mean_and_error(values), strict=True)) for name, values in found.items()}
    return {"learnt": kernels, "accuracy": means, "by_seed": found, "cpu": spent}


def learnt(split: Split, kernels: str, seed: int) -> Coreset:
    """The coreset of one seed; kip starts from random images."""
    if kernels == RANDOM:
        return attar.reduce(split, "uniform", per_class=PER_CLASS, seed=seed, network="linear")
    options = {"kernels": kernels, "ridge": RIDGE, "batch": BATCH}
    return attar.reduce(
        split, "kip", per_class=PER_CLASS, seed=seed, network="linear", options=options, descent=DESCENT
    )


def _csv(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(("learnt", "evaluated", "seed", "accuracy"))
    for row in rows:
        for name, values in row["by_seed"].items():
            for seed, value in zip(SEEDS, values, strict=True):
                lines.writerow((row["learnt"], name, seed, f"{value:.4f}"))
    return out.getvalue()
