"""Claim: on Fashion-MNIST, every condensation method beats as many random images, on two cores.

All rows share one small network and one number of steps; the options of each method are those of the recipe, chosen on
validation images so that a coreset takes minutes. The test set is used once per run. Networks are trained on the
examples of ``label-solve`` by regression, on those of ``mtt`` with their learnt step size, and on those of ``dsa`` and
``cafe+dsa`` with augmentation. For comparison, random images are also evaluated by regression; random images and those
of ``dm``, ``dc`` and ``cafe`` with augmentation; and kernel methods by kernel ridge regression itself: its accuracy,
and its distance to the regression on many real images (the weak and strong ε of the KIP paper). An interrupted
benchmark resumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Generator, Tensor

import attar
from attar.assess.metrics import mean_and_error
from attar.condense.contract import Inference
from attar.condense.kernels import FIXED, KernelRidge, closeness
from attar.condense.label_solve import LabelSolve
from attar.core.files import write_json
from attar.coreset import Coreset
from attar.data import Data, augment
from attar.study import Study
from benchmarks import RESULTS, WORK, carry_out, publish, recipe

KERNEL, RIDGE, REAL, NAME = "ntk1", 1e-6, 5000, "condensers"
REGRESSED = ("uniform", "kip", "label-solve")  # methods whose coresets are also evaluated by kernel ridge regression


def main() -> list[Path]:
    """Carry out the recipe; write the study and the kernel regressions."""
    study = carry_out(recipe("condensers-small"), NAME)
    under = Inference(training={"augment": augment.DSA})
    beside = {
        "kernel_ridge": kernel_ridge(study, WORK / NAME),
        "regression": otherwise(study, WORK / NAME, ("uniform",), LabelSolve().inference),
        "augmented": otherwise(study, WORK / NAME, ("uniform", "dm", "dc", "cafe"), under),
    }
    written = publish(study, NAME)
    write_json(RESULTS / NAME / "kernels.json", {"command": study.command, **beside})
    return [*written, RESULTS / NAME / "kernels.json"]


def kernel_ridge(study: Study, work: Path, real: int = REAL) -> Any:
    """Kernel ridge regression itself on the coresets of kernel methods and on random images, over the test set.

    Its accuracy, and the least ε for which it approximates the regression on ``real`` training images.
    """
    split, kernel = attar.load(study.data["name"]), FIXED[KERNEL]
    some = split.train.sample_per_class(real // split.test.classes, Generator().manual_seed(0))
    whole = KernelRidge.fit(some, kernel, RIDGE, split.test.classes).targets(split.test.x)
    found: dict[str, dict[tuple[str, int], list[float]]] = {"accuracy": {}, "weak": {}, "strong": {}}
    for run in study.runs:
        if run.method in REGRESSED and run.coreset and run.per_class:
            fitted = KernelRidge.fit(Coreset.load(work / run.coreset).data, kernel, RIDGE, split.test.classes)
            said, key = fitted.targets(split.test.x), (run.method, run.per_class)
            scores = {"accuracy": accuracy(said, split.test), **closeness(said, whole, split.test)._asdict()}
            for name, value in scores.items():
                found[name].setdefault(key, []).append(value)
    tables = {name: _rows(values) for name, values in found.items()}
    about = {"kernel": KERNEL, "ridge": RIDGE, "real": len(some), "accuracy_of_real": accuracy(whole, split.test)}
    return about | tables


def accuracy(said: Tensor, data: Data) -> float:
    """The accuracy of a regression."""
    return float((said.argmax(1) == data.hard).double().mean())


def otherwise(study: Study, work: Path, methods: tuple[str, ...], own: Inference) -> Any:
    """Test accuracy of networks trained on the examples of some methods with the training settings of another."""
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
