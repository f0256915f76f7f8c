"""The score of a coreset, or of several made with different seeds, on a problem of the board."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field
from statistics import mean
from typing import Any, Final, Literal

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from attar.assess.distance import Distance
from attar.assess.metrics import STRICT, Scores
from attar.assess.statistics import Paired, t_interval, with_half
from attar.board.records import Kind
from attar.core.cost import Cost
from attar.study.results import machine, versions

FORMAT: Final = "attar-score-1"
KIND = Kind("score", FORMAT, "judge the coreset again with `attar submit`.")
MEANS = ("accuracy", "nll", "balanced_accuracy", "ece", "brier", "validation_accuracy", "validation_nll")
ADDED = ("worst", "majority")  #: means that older files do not have
MB = 1e6  #: bytes


@dataclass(frozen=True, config=STRICT)
class Judged:
    """One posterior of one coreset: its scores on test, once read, and on validation, for choices."""

    seed: int  #: of the coreset
    evaluation: int  #: number of the posterior, from 0 for each coreset
    coreset: str  #: its fingerprint
    accuracy: float
    nll: float
    balanced_accuracy: float
    ece: float
    brier: float
    validation_accuracy: float
    validation_nll: float
    distance: Distance | None  #: to the predictive of the reference, if the problem has one
    made: Cost | None  #: what making the coreset took, if that is on record
    judged: Cost  #: what the posterior took
    divergence: dict[str, float] | None = None  #: of the posterior from the reference draws, for Bayesian models
    rhat: float | None = None  #: of chains
    worst: float | None = None  #: lowest recall of a class; None in older files
    majority: float | None = None  #: accuracy of always answering the most frequent training class; None in older files

    @staticmethod
    def scores(test: Scores, validation: Scores, frequent: int) -> dict[str, float]:
        """The fields that come from predictions; ``frequent`` is the most frequent class of the training set."""
        return {
            "accuracy": test.accuracy,
            "nll": test.nll,
            "balanced_accuracy": test.balanced,
            "ece": test.ece,
            "brier": test.brier,
            "validation_accuracy": validation.accuracy,
            "validation_nll": validation.nll,
            "worst": test.worst,
            "majority": test.share(frequent),
        }


@dataclass(frozen=True, config=STRICT)
class Score:
    """A row of the board: means over coresets, and every value behind them."""

    problem: str
    judged_by: str  #: checksum of the problem
    data: str
    method: str
    per_class: int
    protocol: str
    network: str
    seeds: list[int]  #: of the coresets
    accuracy: float
    nll: float
    balanced_accuracy: float
    ece: float
    brier: float
    validation_accuracy: float
    validation_nll: float
    distance: float | None  #: total variation from the predictive of the reference
    gain_over_random: float | None  #: accuracy minus that of random subsets of the same size; None for those
    cpu_seconds: float | None  #: to make a coreset; None if that is not on record
    mb: float | None  #: peak memory while it was made
    bytes: int  #: of examples, labels, weights and what was learnt beside them
    runs: list[Judged]
    family: str = ""  #: select, condense or bayes; empty for sets that were made elsewhere
    source: str | None = None  #: where the set was published, if it was made elsewhere
    notes: list[str] = field(default_factory=list)  #: what must be said beside the scores
    coresets: list[str] = field(default_factory=list)  #: files in ``coresets``, where they are small
    worst: float | None = None  #: lowest recall of a class; None in older files
    majority: float | None = None  #: accuracy of always answering the most frequent training class; None in older files
    versions: dict[str, str] = field(default_factory=versions)
    machine: dict[str, str] = field(default_factory=machine)
    format: Literal["attar-score-1"] = FORMAT

    def __post_init__(self) -> None:
        if twice := [seed for seed, count in Counter(self.seeds).items() if count > 1]:
            raise ValueError(f"seed {twice[0]} counts twice")
        if {run.seed for run in self.runs} != set(self.seeds):
            raise ValueError("seeds and runs differ")

    def __str__(self) -> str:
        gain = "" if self.gain_over_random is None else f"  over random {100 * self.gain_over_random:+.1f} points"
        near = "" if self.distance is None else f"  distance {self.distance:.3f}"
        accuracy = with_half(*t_interval([100 * value for value in self.values()]), ".1f")
        return (
            f"{self.method}, {self.per_class} per class of {self.data}, {self.protocol}: accuracy {accuracy} %  "
            f"nll {self.nll:.3f}  ece {self.ece:.3f}  brier {self.brier:.3f}{near}{gain}"
        )

    def __repr__(self) -> str:
        return f"Score({self})"

    @property
    def key(self) -> str:
        """The name of its file."""
        return f"{self.problem}--{self.method}-{self.per_class}"

    def values(self, metric: str = "accuracy") -> list[float]:
        """The independent values behind a figure: of coresets or, for a single one, of its posteriors."""
        means = self.by_seed(metric)
        return list(means.values()) if len(means) > 1 else [float(getattr(run, metric)) for run in self.runs]

    def by_seed(self, metric: str = "accuracy") -> dict[int, float]:
        """The mean over the posteriors of each coreset, by its seed."""
        return {seed: mean(getattr(run, metric) for run in self.runs if run.seed == seed) for seed in self.seeds}

    def half(self, metric: str = "accuracy") -> float | None:
        """Half the width of the 95 % t-interval of a figure."""
        return t_interval(self.values(metric))[1]

    def against(self, other: Score, metric: str = "accuracy", scale: float = 100.0) -> Paired | None:
        """The difference to another score, seed by seed; in points for shares."""
        ours, theirs = ({s: scale * v for s, v in score.by_seed(metric).items()} for score in (self, other))
        return Paired.of(ours, theirs)

    @property
    def divergence(self) -> dict[str, float] | None:
        """Mean divergences from the reference draws, for Bayesian models."""
        found = [run.divergence for run in self.runs if run.divergence is not None]
        return {name: mean(each[name] for each in found) for name in found[0]} if found else None


ADAPTER: TypeAdapter[Score] = TypeAdapter(Score)


def summarised(runs: Sequence[Judged], random: float | None) -> dict[str, Any]:
    """The means of a score, each coreset counting once.

    Args:
        runs: Every posterior.
        random: Accuracy of random subsets of the same size, if this is not one.
    """
    seeds = list(dict.fromkeys(run.seed for run in runs))

    def over(pick: Callable[[Judged], float]) -> float:
        return mean(mean(pick(run) for run in runs if run.seed == seed) for seed in seeds)

    means: dict[str, Any] = {name: over(lambda run, name=name: getattr(run, name)) for name in MEANS}  # type: ignore[misc]
    for name in ADDED:
        known = all(getattr(run, name) is not None for run in runs)
        means[name] = over(lambda run, name=name: getattr(run, name)) if known else None  # type: ignore[misc]
    near = [run.distance for run in runs]
    made = [run.made for run in runs]
    return means | {
        "seeds": seeds,
        "distance": None if None in near else over(lambda run: run.distance.total_variation),  # type: ignore[union-attr]
        "gain_over_random": None if random is None else means["accuracy"] - random,
        "cpu_seconds": None if None in made else over(lambda run: run.made.cpu),  # type: ignore[union-attr]
        "mb": None if None in made else max(cost.memory for cost in made if cost) / MB,
    }
