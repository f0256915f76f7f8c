"""Claim: on Fashion-MNIST, what every condensation method learns beats as many random images, on two cores.

All rows share one small network and one number of steps; the options of each method are those of the recipe, chosen on
validation images so that a coreset takes minutes. The test set is read once a run. The examples of ``label-solve`` are
learnt from by regression, those of ``mtt`` with their own step size and those of ``dsa`` under its augmentation, so
random images are judged by regression too, those and the images of ``dc`` under augmentation, and kernel methods by
kernel ridge regression itself. A run that is cut off
goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import attar
from attar.condense.contract import Inference
from attar.condense.kernels import FIXED, KernelRidge
from attar.condense.label_solve import LabelSolve
from attar.coreset import Coreset
from attar.data import augment
from attar.evaluate import Study
from attar.evaluate.study import mean_and_error
from attar.files import write_json
from benchmarks import RESULTS, WORK, carry_out, publish

KERNEL, RIDGE, NAME = "ntk1", 1e-6, "condensers"


def main() -> list[Path]:
    """Carry out the recipe; write the study and the kernel regressions."""
    study = carry_out("condensers-small", NAME)
    beside = {
        "kernel_ridge": kernel_ridge(study, WORK / NAME),
        "regression": otherwise(study, WORK / NAME, ("uniform",), LabelSolve.inference),
        "augmented": otherwise(study, WORK / NAME, ("uniform", "dc"), Inference(training={"augment": augment.DSA})),
    }
    written = publish(study, WORK / NAME, RESULTS / NAME)
    write_json(RESULTS / NAME / "kernels.json", {"command": study.command, **beside})
    return [*written, RESULTS / NAME / "kernels.json"]


def kernel_ridge(study: Study, work: Path, methods: tuple[str, ...] = ("uniform", "kip", "label-solve")) -> Any:
    """Test accuracy of kernel ridge regression itself on the coresets of kernel methods and on random images."""
    test, kernel = attar.load(study.data["name"]).test, FIXED[KERNEL]
    found: dict[tuple[str, int], list[float]] = {}
    for run in study.runs:
        if run.method in methods and run.coreset and run.per_class:
            fitted = KernelRidge.fit(Coreset.load(work / run.coreset).data, kernel, RIDGE, test.classes)
            right = (fitted.predict(test.x).argmax(1) == test.hard).double().mean()
            found.setdefault((run.method, run.per_class), []).append(float(right))
    return {"kernel": KERNEL, "ridge": RIDGE, "table": _rows(found)}


def otherwise(study: Study, work: Path, methods: tuple[str, ...], own: Inference) -> Any:
    """Test accuracy of networks that learn from the examples of some methods as from those of another."""
    test = attar.load(study.data["name"]).test
    found: dict[tuple[str, int], list[float]] = {}
    for run in study.runs:
        if run.method in methods and run.coreset and run.per_class:
            coreset = Coreset.load(work / run.coreset)
            budget = replace(coreset.training, **own.training)
            draws = int(study.config["draws"])
            posterior = attar.infer(coreset, own.sampler, draws=draws, seed=run.seed, training=budget)
            found.setdefault((run.method, run.per_class), []).append(attar.evaluate(posterior, test).accuracy)
    return {"inference": own.sampler, "training": dict(own.training), "table": _rows(found)}


def _rows(found: Mapping[tuple[str, int], list[float]]) -> list[dict[str, Any]]:
    return [
        {"method": method, "per_class": size, **dict(zip(("mean", "error"), mean_and_error(values), strict=True))}
        for (method, size), values in found.items()
    ]
