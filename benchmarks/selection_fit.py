"""Claim: selection by gradients is no worse than random where the scoring network stops by fit.

Methods with their default options are compared with a random subset on Fashion-MNIST and CIFAR-10, seed by seed.
Values of ``fit``, step sizes of glister and three things that published code does otherwise than its papers are tried
with other seeds on the validation set, without the test set. Every finished cell is a file under ``build/benchmarks``,
so an interrupted benchmark resumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from attar.core.files import write_json
from attar.engine import keep_freed_memory
from attar.nets.train import Training
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK
from benchmarks._selecting import Bench, Row, Setting

DATA, FRACTIONS, SEEDS = ("fashion-mnist", "cifar10"), (0.001, 0.01), tuple(range(5))
SETTING = Setting(examples=10_000, scoring=Training(steps=300), folder=WORK / "selection_fit")
METHODS = ("lcmat-s", "craig", "gradmatch", "glister")
ROWS: dict[str, Row] = {"uniform": ("uniform", {}), **{name: (name, {}) for name in METHODS}}
#: Choices are made on validation examples, with other seeds than those of the table.
QUIET = replace(SETTING, test=False)
CHOICE, CHOICE_SEEDS = ("mnist", "fashion-mnist", "cifar10"), (10,)
FITS, CHOICE_METHODS = (0.1, 0.2, 0.4, 1.0), ("lcmat-s", "craig")
STEPS, STEPS_DATA, STEPS_SEEDS = (1.0, 5.0), ("mnist", "fashion-mnist"), tuple(range(10, 15))
STEP_ROWS: dict[str, Row] = {
    "uniform": ("uniform", {}),
    "glister": ("glister", {}),
    **{f"glister, eta={eta:g}": ("glister", {"eta": eta}) for eta in STEPS},
}
#: Published code beside the equations of its papers; steps this small leave the gradient of glister as it was.
ODD_ROWS: dict[str, Row] = {
    "uniform": ("uniform", {}),
    "craig": ("craig", {}),
    "craig, gradient=published": ("craig", {"gradient": "published"}),
    "glister": ("glister", {}),
    "glister without updates": ("glister", {"eta": 1e-9}),
}
MODE_ROWS: dict[str, Row] = {
    "uniform": ("uniform", {}),
    "lcmat-s": ("lcmat-s", {}),
    "lcmat-s, mode=train": ("lcmat-s", {"mode": "train"}),
}
#: The mode matters with batch norm alone, which inference refuses: other networks learn from these picks.
BATCH = replace(QUIET, network="convnet-d3w16-batch")
COMMAND = "python -m benchmarks selection_fit"


def main() -> list[Path]:
    """Measure everything and write the files."""
    keep_freed_memory()
    steps = table("fit_steps", STEP_ROWS, QUIET, STEPS_DATA, seeds=STEPS_SEEDS)
    return [table("fit", ROWS), choice(), steps, *published()]


def published(
    data: Sequence[str] = ("fashion-mnist",),
    fractions: Sequence[float] = (0.01,),
    seeds: Sequence[int] = STEPS_SEEDS,
    settings: tuple[Setting, Setting] = (QUIET, BATCH),
    results: Path = RESULTS,
) -> list[Path]:
    """Validation accuracy of what published code does otherwise: gradients and updates, and the network's mode."""
    plain, batch = settings
    return [
        table("fit_published", ODD_ROWS, plain, data, fractions, seeds, results),
        table("fit_mode", MODE_ROWS, batch, data, fractions, seeds, results, plain.network),
    ]


def table(
    name: str,
    rows: Mapping[str, Row],
    setting: Setting = SETTING,
    data: Sequence[str] = DATA,
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = SEEDS,
    results: Path = RESULTS,
    learner: str | None = None,
) -> Path:
    """Test accuracy (validation accuracy, if the test set is not read) by data set, row and fraction, one per seed."""
    found, score = {}, "accuracy" if setting.test else "validation"
    for source in data:
        cells = _cells(replace(setting, data=source), rows, fractions, seeds, score, learner)
        found[source] = {label: {str(f): by[f] for f in fractions} for label, by in cells.items()}
    about = {"data": data, "fractions": fractions, "seeds": seeds, "learner": learner or setting.network}
    return _write(results / "selection" / f"{name}.json", setting, about, {"accuracies": found})


def choice(
    setting: Setting = QUIET,
    data: Sequence[str] = CHOICE,
    fits: Sequence[float] = FITS,
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = CHOICE_SEEDS,
    results: Path = RESULTS,
) -> Path:
    """Validation accuracy above a random subset by fit, mean over the fractions and seeds."""
    rows: dict[str, Row] = {"uniform": ("uniform", {})}
    rows |= {f"{name}, fit={fit:g}": (name, {"fit": fit}) for name in CHOICE_METHODS for fit in fits}
    found = {}
    for source in data:
        cells = _cells(replace(setting, data=source), rows, fractions, seeds, "validation")
        found[source] = {
            label: mean(mean(by[f]) - mean(cells["uniform"][f]) for f in fractions) for label, by in cells.items()
        }
    about = {"data": data, "fractions": fractions, "seeds": seeds, "fits": fits}
    return _write(results / "selection" / "fit_choice.json", setting, about, {"gains": found})


def _cells(
    setting: Setting,
    rows: Mapping[str, Row],
    fractions: Sequence[float],
    seeds: Sequence[int],
    score: str,
    learner: str | None = None,
) -> dict[str, dict[float, list[float]]]:
    """A score of every row by fraction, one for each seed."""
    bench = Bench(setting, fractions)
    found: dict[str, dict[float, list[float]]] = {label: {f: [] for f in fractions} for label in rows}
    for seed, (label, row), fraction in product(seeds, rows.items(), fractions):
        found[label][fraction].append(bench.cell(*row, fraction, seed, learner)[score])
    return found


def _write(path: Path, setting: Setting, about: Mapping[str, Any], found: Mapping[str, Any]) -> Path:
    shared = {"command": COMMAND, "setting": setting.plain() | dict(about)}
    write_json(path, {**shared, **found, "versions": versions(), "machine": machine()})
    return path
