"""The rows of a report: one method at one size, over its coresets and their evaluations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from attar.assess.statistics import Paired
from attar.core.errors import AttarError
from attar.report.estimate import Estimate, Percent
from attar.study.compared import RANDOM, paired
from attar.study.results import Run, Study, values
from attar.study.spec import CONVERGED, FULL, REFERENCES

COLOURS = 8

Metric = Literal["nll", "ece", "brier"]
METRICS: tuple[Metric, ...] = ("nll", "ece", "brier")
DIGITS: dict[Metric, int] = {"nll": 2, "ece": 3, "brier": 2}
Recall = Literal["accuracy", "balanced", "worst"]
RECALLS: tuple[Recall, ...] = ("accuracy", "balanced", "worst")


@dataclass(frozen=True)
class Row:
    """One method at one size."""

    method: str
    per_class: int | None
    runs: list[Run]
    colour: str  #: CSS class; a method has one colour on the whole page
    best: bool = False  #: highest mean validation accuracy of all reductions
    best_selection: bool = False  #: highest mean validation accuracy of the selection methods of its size
    gap: Paired | None = None  #: difference in test accuracy to a random subset of its size, in points

    @property
    def full(self) -> bool:
        return self.method in REFERENCES

    @property
    def label(self) -> str:
        return label(self.method)

    @property
    def called(self) -> str:
        """Its name within a sentence."""
        trained = {FULL: f", with {self.budget} training budget", CONVERGED: ", trained to convergence"}
        return f"the full data{trained[self.method]}" if self.full else self.label

    @property
    def size(self) -> int:
        return self.runs[0].size

    @property
    def amount(self) -> str:
        """Its size as text."""
        shared = " on average" if self.runs[0].notes.get("budget") else ""
        each = "" if self.per_class is None else f"{self.per_class:,} per class{shared}, "
        return f"{each}{self.size:,} examples in all" if each else f"{self.size:,} examples"

    @property
    def coresets(self) -> int:
        """Number of coresets, one per seed; for the full data, of trainings."""
        return len({run.seed for run in self.runs})

    @property
    def evaluations(self) -> int:
        """Posteriors per coreset."""
        return max(Counter(run.seed for run in self.runs).values())

    @property
    def marks(self) -> list[str]:
        """Its roles in the comparison."""
        roles = {
            "random subset": self.method == RANDOM,
            "best selection": self.best_selection,
            "best on validation": self.best,
        }
        return [role for role, plays in roles.items() if plays]

    @property
    def caution(self) -> str:
        """A caution for its scores, such as a start from full-data experts; else empty."""
        return next((str(run.notes["label"]) for run in self.runs if run.notes.get("label")), "")

    @property
    def source(self) -> str:
        """Where the rule of its evaluation comes from, under a protocol with a rule for every method; else empty."""
        return str(self.runs[0].notes.get("evaluation", {}).get("source", ""))

    @property
    def budget(self) -> str:
        """Whose training budget it has."""
        return "its published" if self.source else "the same"

    @property
    def accuracies(self) -> list[float]:
        """The independent test accuracies, in percent: of coresets or, for a single one, of its evaluations."""
        return values(self.runs, lambda run: 100 * run.test.accuracy)

    @property
    def accuracy(self) -> Percent:
        """Test accuracy in percent."""
        return self.recall("accuracy")

    def recall(self, kind: Recall) -> Percent:
        """Test accuracy in percent: of all examples, the mean over classes, or that of the worst class."""
        return Percent.of(values(self.runs, lambda run: 100 * float(getattr(run.test, kind))))

    @property
    def validation(self) -> Percent:
        """Validation accuracy in percent."""
        return Percent.of(values(self.runs, lambda run: 100 * run.validation.accuracy))

    def test(self, metric: Metric) -> Estimate:
        return Estimate.of(values(self.runs, lambda run: float(getattr(run.test, metric))))


def rows(study: Study) -> list[Row]:
    """All rows, by size and then by validation accuracy, best first; the full data comes last."""
    if not study.runs:
        raise AttarError("This study holds no runs: run it again with `attar compare`.")
    groups, colour = study.groups(), colours(run.method for run in study.runs)
    means = {key: Row(*key, runs, "").validation.mean for key, runs in groups.items()}
    reduced = [key for key in groups if key[0] not in REFERENCES]
    best = max(reduced, key=means.__getitem__, default=None)
    selected = {(study.best_selection(size), size) for _, size in reduced if size is not None}
    order = sorted(groups, key=lambda key: (_place(key[0]), groups[key][0].size, -means[key]))
    return [Row(*key, groups[key], colour[key[0]], key == best, key in selected, _gap(groups, *key)) for key in order]


def _place(method: str) -> int:
    """Reductions first, then the full data, then the full data trained to convergence."""
    return 1 + REFERENCES.index(method) if method in REFERENCES else 0


def _gap(groups: dict[tuple[str, int | None], list[Run]], method: str, size: int | None) -> Paired | None:
    random = groups.get((RANDOM, size), [])
    return paired(groups[method, size], random) if random and method != RANDOM else None


def colours(methods: Iterable[str]) -> dict[str, str]:
    """The CSS class of every method; baselines have their own."""
    others = dict.fromkeys(method for method in methods if method not in (RANDOM, *REFERENCES))
    cycle = {method: f"c{i % COLOURS + 1}" for i, method in enumerate(others)}
    return cycle | {RANDOM: "c-random", **dict.fromkeys(REFERENCES, "c-full")}


def label(method: str) -> str:
    """A method's name as a reader knows it."""
    return {RANDOM: "uniform (random)", FULL: "full data", CONVERGED: "full, converged"}.get(method, method)


def by_size(table: list[Row]) -> dict[int, list[Row]]:
    """The reduced rows by number of examples, in the order of the table."""
    sizes: dict[int, list[Row]] = {}
    for row in table:
        if not row.full:
            sizes.setdefault(row.size, []).append(row)
    return sizes


def the_best(table: list[Row]) -> Row | None:
    return next((row for row in table if row.best), None)


def the_full(table: list[Row]) -> Row | None:
    """The full data that others are measured against: trained to convergence if it was run."""
    return max((row for row in table if row.full), key=lambda row: _place(row.method), default=None)
