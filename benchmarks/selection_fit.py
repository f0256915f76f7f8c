"""Claim: selection by gradients is no worse than random where the scoring network stops by fit.

Methods with their default options are compared with a random subset on Fashion-MNIST and CIFAR-10, seed by seed, and
with a scoring network that takes all its steps (fit 1); so are the ways of published code, on a network with batch
norm, where both matter. Defaults are chosen by ``choice``, with another seed, on the validation set; it does not read
the test set. Every finished cell is a file under ``build/benchmarks``, so an interrupted benchmark resumes.
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
#: Chosen on validation examples, with another seed than those of the tables.
CHOICE, CHOICE_SEEDS, FITS = ("digits", *DATA), (10,), (0.1, 0.2, 0.35, 0.6, 1.0)
METHODS = ("lcmat-s", "craig", "gradmatch", "glister")
ROWS: dict[str, Row] = {
    "uniform": ("uniform", {}),
    **{name: (name, {}) for name in METHODS},
    "lcmat-s, fit=1": ("lcmat-s", {"fit": 1.0}),
}
BATCH_NORM = "convnet-d3w16-batch"
PUBLISHED: dict[str, Row] = {
    "uniform": ("uniform", {}),
    "lcmat-s": ("lcmat-s", {}),
    "lcmat-s, mode=train": ("lcmat-s", {"mode": "train"}),
    "craig, gradient=published": ("craig", {"gradient": "published"}),
}
COMMAND = "python -m benchmarks selection_fit"


def main() -> list[Path]:
    """Measure everything and write the files."""
    keep_freed_memory()
    return [table("fit", ROWS), table("fit_published", PUBLISHED, replace(SETTING, network=BATCH_NORM)), choice()]


def table(
    name: str,
    rows: Mapping[str, Row],
    setting: Setting = SETTING,
    data: Sequence[str] = DATA,
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = SEEDS,
    results: Path = RESULTS,
) -> Path:
    """Test accuracy of every row by data set and fraction, one for each seed."""
    found = {}
    for source in data:
        cells = _cells(replace(setting, data=source), rows, fractions, seeds, "accuracy")
        found[source] = {label: {str(f): by[f] for f in fractions} for label, by in cells.items()}
    about = {"data": data, "fractions": fractions, "seeds": seeds}
    return _write(results / "selection" / f"{name}.json", setting, about, {"accuracies": found})


def choice(
    setting: Setting = replace(SETTING, test=False),
    data: Sequence[str] = CHOICE,
    fits: Sequence[float] = FITS,
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = CHOICE_SEEDS,
    results: Path = RESULTS,
) -> Path:
    """Validation accuracy above a random subset by fit, mean over the fractions and seeds."""
    rows: dict[str, Row] = {"uniform": ("uniform", {})}
    rows |= {f"{name}, fit={fit:g}": (name, {"fit": fit}) for name in METHODS for fit in fits}
    found = {}
    for source in data:
        cells = _cells(replace(setting, data=source), rows, fractions, seeds, "validation")
        found[source] = {
            label: mean(mean(by[f]) - mean(cells["uniform"][f]) for f in fractions) for label, by in cells.items()
        }
    about = {"data": data, "fractions": fractions, "seeds": seeds, "fits": fits}
    return _write(results / "selection" / "fit_choice.json", setting, about, {"gains": found})


def _cells(
    setting: Setting, rows: Mapping[str, Row], fractions: Sequence[float], seeds: Sequence[int], score: str
) -> dict[str, dict[float, list[float]]]:
    """A score of every row by fraction, one for each seed."""
    bench = Bench(setting, fractions)
    found: dict[str, dict[float, list[float]]] = {label: {f: [] for f in fractions} for label in rows}
    for seed, (label, row), fraction in product(seeds, rows.items(), fractions):
        found[label][fraction].append(bench.cell(*row, fraction, seed)[score])
    return found


def _write(path: Path, setting: Setting, about: Mapping[str, Any], found: Mapping[str, Any]) -> Path:
    shared = {"command": COMMAND, "setting": setting.plain() | dict(about)}
    write_json(path, {**shared, **found, "versions": versions(), "machine": machine()})
    return path
