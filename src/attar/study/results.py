"""The results of a study: settings, scores and costs of every run; one JSON file."""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Callable
from dataclasses import field, replace
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import torch
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from attar.assess.distance import distillation_ratio
from attar.assess.metrics import STRICT, Scores, mean_and_error
from attar.core.cost import Cost
from attar.core.errors import AttarError, unknown
from attar.core.files import read_json, write_json

SHOWN = 40  #: rows shown in the ``repr``


@dataclass(frozen=True, config=STRICT)
class Run:
    """One coreset, given by method, size and seed, and one posterior inferred from it."""

    method: str  #: a registered name, or "full" for the whole training set
    family: str  #: select, condense, bayes, or full
    per_class: int | None
    seed: int
    size: int  #: examples in all
    validation: Scores  #: for choices
    test: Scores  #: for the reported scores only
    reduce_cost: Cost
    infer_cost: Cost
    curve: list[tuple[int, float]] = field(default_factory=list)  #: (step, loss) of the reduction
    coreset: str | None = None  #: its file, relative to the study's folder
    evaluation: int = 0  #: number of the inference, from 0 for each coreset
    notes: dict[str, Any] = field(default_factory=dict)  #: of the sampler: R-hat, warnings, label


#: Columns of tables: heading, value and digits.
COLUMNS: tuple[tuple[str, Callable[[Run], float], int], ...] = (
    ("accuracy %", lambda run: 100 * run.test.accuracy, 1),
    ("NLL", lambda run: run.test.nll, 2),
    ("ECE", lambda run: run.test.ece, 2),
    ("Brier", lambda run: run.test.brier, 2),
)


@dataclass(frozen=True, config=STRICT, repr=False)
class Study:
    """Runs that can be compared, because data, network and training settings are the same."""

    command: str  #: the command that repeats it
    config: dict[str, Any]
    data: dict[str, Any]  #: name, classes, shape, fingerprint and the sizes of train, val and test
    runs: list[Run]
    versions: dict[str, str] = field(default_factory=lambda: versions())
    machine: dict[str, str] = field(default_factory=lambda: machine())
    format: Literal["attar-study-1"] = "attar-study-1"
    #: The folder of its coresets, logs and films; not stored, so that it can be moved.
    folder: Path | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{self.data.get(part, 0):,} {part}" for part in ("train", "val", "test"))
        about = f"Study of {self.data.get('name')} ({sizes}), network {self.config.get('network')}"
        return "\n".join([about, *_table(self)])

    def save(self, path: str | Path) -> None:
        """Write one JSON file."""
        write_json(path, TypeAdapter(Study).dump_python(self, mode="json", exclude={"folder"}))

    @staticmethod
    def load(path: str | Path) -> Study:
        """Read and check a JSON file."""
        try:
            return replace(TypeAdapter(Study).validate_python(read_json(path)), folder=Path(path).parent)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise AttarError(f"{path} is not a study ({where}: {error.errors()[0]['msg']}): make it again.") from error

    def groups(self) -> dict[tuple[str, int | None], list[Run]]:
        """Runs by method and size."""
        grouped: dict[tuple[str, int | None], list[Run]] = {}
        for run in self.runs:
            grouped.setdefault((run.method, run.per_class), []).append(run)
        return grouped

    def csv(self) -> str:
        """One line per run: method, size, seed, test scores, costs, and the label of a start from experts."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        scores, costs = ("accuracy", "nll", "ece", "brier", "worst"), ("wall", "cpu", "memory")
        spent = [f"{part}_{cost}" for part in ("reduce", "infer") for cost in costs]
        writer.writerow(["method", "per_class", "seed", "evaluation", "size", *scores, *spent, "label"])
        for run in self.runs:
            writer.writerow(
                [run.method, run.per_class, run.seed, run.evaluation, run.size]
                + [getattr(run.test, name) for name in scores]
                + [getattr(cost, name) for cost in (run.reduce_cost, run.infer_cost) for name in costs]
                + [run.notes.get("label", "")]
            )
        return text.getvalue()

    def best_selection(self, per_class: int) -> str | None:
        """The selection method with the highest mean validation accuracy at this size."""
        means = {
            method: mean(run.validation.accuracy for run in runs)
            for (method, size), runs in self.groups().items()
            if size == per_class and runs[0].family == "select"
        }
        return max(means, key=means.__getitem__) if means else None


def values(runs: list[Run], pick: Callable[[Run], float]) -> list[float]:
    """The independent values behind a figure.

    Evaluations of one coreset are not independent samples of a method, so each coreset counts once, with the mean of
    its evaluations. If there is only one coreset, the figure is about it, and its evaluations are the values.
    """
    by_coreset: dict[int, list[float]] = {}
    for run in runs:
        by_coreset.setdefault(run.seed, []).append(pick(run))
    return (
        [mean(v) for v in by_coreset.values()] if len(by_coreset) > 1 else [v for s in by_coreset.values() for v in s]
    )


def distillation_size(study: Study, method: str, percent: float = 95.0) -> int | None:
    """The smallest size (examples per class) at which a method keeps ``percent`` of the full data's accuracy.

    Compares means of test accuracy over seeds, at the sizes that were run, without interpolation. None if no size
    reaches it.
    """
    if not percent > 0:
        raise AttarError(f"percent must be positive, got {percent}.")
    means = {key: mean(run.test.accuracy for run in runs) for key, runs in study.groups().items()}
    full = next((value for (_, size), value in means.items() if size is None), None)
    if full is None:
        raise AttarError("The study has no run on the full data to compare with: run it with baselines.")
    sizes = {size: value for (name, size), value in means.items() if name == method and size is not None}
    if not sizes:
        raise unknown("method of this study", method, {name for name, size in means if size is not None})
    return min((s for s, a in sizes.items() if distillation_ratio(a, full) >= percent * (1 - 1e-12)), default=None)


def distillation_sizes(study: Study, percent: float = 95.0) -> str:
    """One sentence: the ``percent`` % distillation size of every method; empty without a run on the full data."""
    groups = study.groups()
    methods = list(dict.fromkeys(method for method, size in groups if size is not None))
    if not methods or all(size is not None for _, size in groups):
        return ""
    found = {method: distillation_size(study, method, percent) for method in methods}
    reached = [f"{method} {size}" for method, size in found.items() if size is not None]
    missed = [method for method, size in found.items() if size is None]
    words = [f"{', '.join(reached)} per class"] if reached else []
    words += [f"not reached by {', '.join(missed)}"] if missed else []
    return f"{percent:g} % distillation size (smallest size with {percent:g} % of full accuracy): {'; '.join(words)}"


def figure(values: list[float], digits: int) -> str:
    """Mean ± standard error; only the mean for a single value."""
    centre, error = mean_and_error(values)
    return f"{centre:.{digits}f} ± {error:.{digits}f}" if len(values) > 1 else f"{centre:.{digits}f}"


def _table(study: Study) -> list[str]:
    """Test scores by method and size, mean ± standard error over seeds, as lines of text."""
    lines = [("method", "per class", *(name for name, _, _ in COLUMNS), "seeds")]
    for (method, size), runs in study.groups().items():
        cells = [figure(values(runs, pick), digits) for _, pick, digits in COLUMNS]
        lines.append((method, "all" if size is None else str(size), *cells, str(len({run.seed for run in runs}))))
    shown, rest = lines[:SHOWN], len(lines) - SHOWN
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    table = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in shown]
    return table + ([f"… and {rest} more rows: see .groups() or .csv()"] if rest > 0 else [])


def versions() -> dict[str, str]:
    return {"attar": version("attar"), "torch": torch.__version__, "python": platform.python_version()}


def machine() -> dict[str, str]:
    return {"system": platform.system(), "processor": platform.machine(), "threads": str(torch.get_num_threads())}
