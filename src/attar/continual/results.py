"""The results of class-incremental learning: accuracies of every stage's network on every stage's data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from statistics import mean
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from attar.assess.metrics import STRICT
from attar.assess.statistics import over_seeds
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.core.files import read_json, write_json
from attar.core.text import csv_text
from attar.infer.diagnose import in_words, together
from attar.study.results import CHAINS, machine, versions

RESULT = "continual.json"
Matrix = list[list[float]]  # row t: accuracies after stage t on the data of stages 0..t


@dataclass(frozen=True, config=STRICT)
class StageInfo:
    """One stage: its classes, and how many examples it has."""

    name: str  #: of the data set
    classes: list[str]
    train: int
    val: int
    test: int


@dataclass(frozen=True, config=STRICT)
class Episode:
    """One method with one seed through all stages."""

    method: str
    family: str  #: select, condense, bayes, or full
    seed: int
    validation: Matrix  #: for choices
    test: Matrix  #: for the reported scores only
    memory: list[int]  #: examples in the memory after every stage
    reduce_cost: list[Cost]  #: of filling the memory, by stage
    train_cost: list[Cost]  #: of training, by stage
    balanced: list[float] = field(default_factory=list)  #: on test after every stage, mean recall of the classes so far
    worst: list[float] = field(default_factory=list)  #: and the lowest recall; both are empty in older files
    chains: dict[str, float | None] = field(default_factory=dict)  #: temperature and largest R-hat, where there are any


@dataclass(frozen=True, config=STRICT, repr=False)
class Continual:
    """Runs that can be compared: the same stages, network and training settings."""

    command: str  #: the command that repeats it
    config: dict[str, Any]
    stages: list[StageInfo]
    runs: list[Episode]
    versions: dict[str, str] = field(default_factory=versions)
    machine: dict[str, str] = field(default_factory=machine)
    majority: list[float] = field(default_factory=list)  #: test accuracy of the most frequent training class, by stage
    format: Literal["attar-continual-1"] = "attar-continual-1"
    folder: Path | None = field(default=None, compare=False)  #: not stored

    def groups(self) -> dict[str, list[Episode]]:
        """Runs by method."""
        grouped: dict[str, list[Episode]] = {}
        for run in self.runs:
            grouped.setdefault(run.method, []).append(run)
        return grouped

    def curve(self, run: Episode) -> list[float]:
        r"""Test accuracy after every stage t on the data of all stages so far, :math:`a_t`."""
        return curve(run.test, [stage.test for stage in self.stages])

    def average(self, run: Episode) -> float:
        r"""Average test accuracy over the stages, :math:`\frac1T \sum_t a_t`."""
        return mean(self.curve(run))

    def __repr__(self) -> str:
        rows = [f"{len(self.stages)} stages, {self.config.get('regime')}, {self.config.get('per_class')} per class"]
        for method, runs in self.groups().items():
            scores = ((self.average(run), forgetting(run.test)) for run in runs)
            average, forgot = (interval(values) for values in zip(*scores, strict=True))
            rows.append(f"{method}: average accuracy {average} %, forgetting {forgot} %, {len(runs)} seeds")
        return "\n".join(rows)

    def save(self, path: str | Path) -> None:
        """Write one JSON file."""
        write_json(path, TypeAdapter(Continual).dump_python(self, mode="json", exclude={"folder"}))

    @staticmethod
    def load(path: str | Path) -> Continual:
        """Read and check a JSON file."""
        try:
            return replace(TypeAdapter(Continual).validate_python(read_json(path)), folder=Path(path).parent)
        except ValidationError as error:
            raise AttarError(f"{path} is no result of attar continual: make it again.") from error

    def csv(self) -> str:
        """One line per run and stage."""
        head = ["method", "seed", "stage", "accuracy", "average", "forgetting", "first_stage_loss"]
        classes = ["balanced", "worst", "majority"]
        lines: list[list[object]] = [[*head, "memory", "reduce_cpu", "train_cpu", *classes, *CHAINS]]
        for run in self.runs:
            scores = [self.average(run), forgetting(run.test), first_stage_loss(run.test)]
            chains = [run.chains.get(name) for name in CHAINS]
            for stage, accuracy in enumerate(self.curve(run)):
                costs = [run.reduce_cost[stage].cpu, run.train_cost[stage].cpu]
                shares = [some[stage] if some else None for some in (run.balanced, run.worst, self.majority)]
                about = [run.method, run.seed, stage + 1, accuracy, *scores, run.memory[stage]]
                lines.append([*about, *costs, *shares, *chains])
        return csv_text(lines)

    def mixing(self) -> list[str]:
        """Temperature and largest R-hat of every row whose networks are chains."""
        rows = {method: together(run.chains for run in runs) for method, runs in self.groups().items()}
        return [f"{method}: {in_words(chains)}" for method, chains in rows.items() if chains]


def curve(matrix: Matrix, sizes: Sequence[int]) -> list[float]:
    """Accuracy after every stage on all examples of the stages so far."""
    return [sum(n * a for n, a in zip(sizes, row, strict=False)) / sum(sizes[: len(row)]) for row in matrix]


def forgetting(matrix: Matrix) -> float:
    r"""Mean drop of a stage's accuracy from its best to the end; zero for a single stage.

    .. math:: F = \frac1{T-1} \sum_{s < T} \big(\max_{s \le t < T} a_{ts} - a_{Ts}\big)
    """
    last = matrix[-1]
    drops = [max(row[s] for row in matrix[s:-1]) - last[s] for s in range(len(matrix) - 1)]
    return mean(drops) if drops else 0.0


def first_stage_loss(matrix: Matrix) -> float:
    """Accuracy that the first stage lost from its own network to the last one, the Mnemonics paper's forgetting."""
    return matrix[0][0] - matrix[-1][0]


def last(series: Sequence[Sequence[float]]) -> str:
    """Means over seeds after the last stage, in percent; a dash for files that do not have them."""
    return interval([values[-1] for values in series]) if all(series) else "–"


def interval(shares: Sequence[float]) -> str:
    """Mean in percent with its 95 % t-interval over seeds; the mean alone for a single seed."""
    return over_seeds([100 * share for share in shares], ".1f")
