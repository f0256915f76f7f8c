"""The results of a study: settings, scores and costs of every run; one JSON file."""

from __future__ import annotations

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

from attar.assess.answers import Answers
from attar.assess.metrics import STRICT, Scores
from attar.assess.statistics import SPREAD, over_seeds
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.core.files import read_json, write_json
from attar.core.text import csv_text
from attar.infer.diagnose import in_words, together
from attar.study.protocol import HONEST

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
    notes: dict[str, Any] = field(default_factory=dict)  #: of the sampler: R-hat, warnings, label; the protocol's rule
    answers: Answers | None = None  #: to some test examples, of the first inference; None in older files


#: Columns of tables: heading, value and digits. Accuracies are in percent.
COLUMNS: tuple[tuple[str, Callable[[Run], float], int], ...] = (
    ("accuracy", lambda run: 100 * run.test.accuracy, 1),
    ("balanced", lambda run: 100 * run.test.balanced, 1),
    ("worst", lambda run: 100 * run.test.worst, 1),
    ("NLL", lambda run: run.test.nll, 2),
    ("ECE", lambda run: run.test.ece, 2),
    ("Brier", lambda run: run.test.brier, 2),
)


CHAINS = ("temperature", "rhat")  #: notes of chains that stand beside their scores


@dataclass(frozen=True, config=STRICT, repr=False)
class Study:
    """Runs that can be compared, because data, network and training settings are the same."""

    command: str  #: the command that repeats it
    config: dict[str, Any]  #: its settings, as plain values
    data: dict[str, Any]  #: name, classes, shape, fingerprint and the sizes of train, val and test
    runs: list[Run]  #: scores and costs, one for each method, size and seed
    versions: dict[str, str] = field(default_factory=lambda: versions())  #: of attar, torch and Python
    machine: dict[str, str] = field(default_factory=lambda: machine())  #: where it ran
    format: Literal["attar-study-1"] = "attar-study-1"  #: of the file
    folder: Path | None = field(default=None, compare=False)  #: of coresets, logs and films; not stored

    def __repr__(self) -> str:
        sizes = ", ".join(f"{self.data.get(part, 0):,} {part}" for part in ("train", "val", "test"))
        about = f"Study of {self.data.get('name')} ({sizes}), network {self.config.get('network')}"
        about += f", protocol {self.protocol}"
        return "\n".join([about, *_table(self), *([legend(self)] if self.runs else []), *self.labels()])

    @property
    def protocol(self) -> str:
        """The name of the protocol by which coresets were evaluated."""
        return str(self.config.get("protocol", HONEST))

    def labels(self) -> list[str]:
        """A line for every label, with the rows whose scores have it."""
        found: dict[str, list[str]] = {}
        for (method, size), runs in self.groups().items():
            for label in dict.fromkeys(str(run.notes["label"]) for run in runs if run.notes.get("label")):
                found.setdefault(label, []).append(f"{method} ({'all' if size is None else size})")
        return [f"{label}: {', '.join(rows)}" for label, rows in found.items()]

    def save(self, path: str | Path) -> None:
        """Write one JSON file at ``path``."""
        write_json(path, TypeAdapter(Study).dump_python(self, mode="json", exclude={"folder"}))

    @staticmethod
    def load(path: str | Path) -> Study:
        """Read and check the JSON file ``path``."""
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

    @property
    def majority(self) -> float:
        """Test accuracy of always answering the most frequent training class.

        Older files do not name that class: there it is the most frequent one of the validation set, which was drawn
        from the training set.
        """
        first = self.runs[0]
        counts = [sum(row) for row in first.validation.confusion]
        known = self.data.get("majority")
        return first.test.share(known if isinstance(known, int) else counts.index(max(counts)))

    def csv(self) -> str:
        """One line per run: method, size, seed, scores, costs, temperature and R-hat of chains, protocol, label."""
        scores, costs = ("accuracy", "balanced", "worst", "nll", "ece", "ece_floor", "brier"), ("wall", "cpu", "memory")
        spent = [f"{part}_{cost}" for part in ("reduce", "infer") for cost in costs]
        about = ("method", "per_class", "seed", "evaluation", "size")
        lines: list[list[object]] = [[*about, *scores, "majority", *spent, *CHAINS, "protocol", "label"]]
        for run in self.runs:
            lines.append(
                [run.method, run.per_class, run.seed, run.evaluation, run.size]
                + [*(getattr(run.test, name) for name in scores), self.majority]
                + [getattr(cost, name) for cost in (run.reduce_cost, run.infer_cost) for name in costs]
                + [run.notes.get(name, "") for name in CHAINS]
                + [self.protocol, run.notes.get("label", "")]
            )
        return csv_text(lines)

    def best_selection(self, per_class: int) -> str | None:
        """The selection method with the highest mean validation accuracy at ``per_class`` examples."""
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
    means = by_seed(runs, pick)
    return list(means.values()) if len(means) > 1 else [pick(run) for run in runs]


def by_seed(runs: list[Run], pick: Callable[[Run], float]) -> dict[int, float]:
    """The mean over the evaluations of each coreset, by its seed."""
    found: dict[int, list[float]] = {}
    for run in runs:
        found.setdefault(run.seed, []).append(pick(run))
    return {seed: mean(some) for seed, some in found.items()}


def cells(runs: list[Run]) -> list[str]:
    """The figures of a row of a table: means ± half widths, close together so that all fit a screen."""
    return [over_seeds(values(runs, pick), f".{digits}f").replace(" ± ", "±") for _, pick, digits in COLUMNS]


def legend(study: Study) -> str:
    """What the figures of a table are."""
    counts = sorted({len({run.seed for run in runs}) for runs in study.groups().values()})
    seeds = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    return (
        f"mean over seeds ({seeds}); {SPREAD}\n"
        "in %: accuracy, balanced (mean over classes), worst (lowest recall of a class)\n"
        f"always answering the most frequent training class: {100 * study.majority:.1f} %"
        + "".join(f"\n{line}" for line in mixing(study))
    )


def mixing(study: Study) -> list[str]:
    """Temperature and largest R-hat of every row whose posteriors are chains; a row that was not judged says so."""
    found = []
    for (method, size), runs in study.groups().items():
        if chains := together(run.notes for run in runs):
            row = method if size is None else f"{method} {size}"
            found.append(f"{row}: {in_words(chains)}")
    return found


def _table(study: Study) -> list[str]:
    """Test scores by method and size as lines of text."""
    lines = [("method", "n", *(name for name, _, _ in COLUMNS))]
    for (method, size), runs in study.groups().items():
        lines.append((method, "all" if size is None else str(size), *cells(runs)))
    shown, rest = lines[:SHOWN], len(lines) - SHOWN
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    table = [" ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in shown]
    return table + ([f"… and {rest} more rows: see .groups() or .csv()"] if rest > 0 else [])


def versions() -> dict[str, str]:
    return {"attar": version("attar"), "torch": torch.__version__, "python": platform.python_version()}


def machine() -> dict[str, str]:
    return {"system": platform.system(), "processor": platform.machine(), "threads": str(torch.get_num_threads())}
