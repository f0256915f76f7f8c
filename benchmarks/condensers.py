"""Claim: on Fashion-MNIST, what every condensation method learns beats as many random images, on two cores.

All rows share one small network and one training budget; the options and steps of each method are those of the recipe,
chosen on validation images so that a coreset takes minutes. The test set is read once a run. Kernel methods are
judged by kernel ridge regression too. A run that is cut off goes on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attar
from attar.condense.kernels import FIXED, KernelRidge
from attar.coreset import Coreset
from attar.evaluate import Study
from attar.evaluate.study import mean_and_error
from attar.files import write_json
from benchmarks import RESULTS, WORK, carry_out, publish

KERNEL, RIDGE, NAME = "ntk1", 1e-6, "condensers"


def main() -> list[Path]:
    """Carry out the recipe; write the study and the kernel regressions."""
    study = carry_out("condensers-small", NAME)
    write_json(RESULTS / NAME / "kernel_ridge.json", kernel_ridge(study, WORK / NAME))
    return publish(study, WORK / NAME, RESULTS / NAME)


def kernel_ridge(study: Study, work: Path, methods: tuple[str, ...] = ("uniform", "kip", "label-solve")) -> Any:
    """Test accuracy of kernel ridge regression itself on the coresets of kernel methods and on random images."""
    test, kernel = attar.load(study.data["name"]).test, FIXED[KERNEL]
    found: dict[tuple[str, int], list[float]] = {}
    for run in study.runs:
        if run.method in methods and run.coreset and run.per_class:
            fitted = KernelRidge.fit(Coreset.load(work / run.coreset).data, kernel, RIDGE, test.classes)
            right = (fitted.predict(test.x).argmax(1) == test.hard).double().mean()
            found.setdefault((run.method, run.per_class), []).append(float(right))
    rows = [
        {"method": method, "per_class": size, **dict(zip(("accuracy", "error"), mean_and_error(values), strict=True))}
        for (method, size), values in found.items()
    ]
    return {"command": study.command, "kernel": KERNEL, "ridge": RIDGE, "table": rows}
