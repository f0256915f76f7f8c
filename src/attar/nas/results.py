"""The results of an architecture search: accuracies of all networks on all proxy sets and on the full data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from attar.assess.metrics import STRICT
from attar.assess.statistics import known, over_seeds, spearman
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.core.files import read_json, write_json
from attar.core.text import csv_text
from attar.infer.diagnose import in_words, together
from attar.study.results import CHAINS, machine, versions
from attar.study.spec import FULL

RESULT = "nas.json"
TOP = 10  #: networks of the second correlation


@dataclass(frozen=True, config=STRICT)
class Proxy:
    """One proxy set."""

    method: str
    seed: int
    size: int  #: examples
    cost: Cost  #: of making it


@dataclass(frozen=True, config=STRICT)
class Trial:
    """One network trained on one set."""

    row: str  #: a method, ``early-stopping`` or ``full``
    seed: int
    network: str
    parameters: int
    cost: Cost
    validation: float | None = None  #: accuracy, for the ranking; None if training failed
    test: float | None = None  #: accuracy
    problem: str | None = None  #: why training failed
    balanced: float | None = None  #: balanced accuracy on test; None in older files
    worst: float | None = None  #: lowest recall of a class on test; None in older files
    chains: dict[str, float | None] = field(
        default_factory=dict
    )  #: temperature and R-hat, where the sampler is a chain


@dataclass(frozen=True, config=STRICT, repr=False)
class Nas:
    """An architecture search: every network of a grid on every proxy set and on the full data."""

    command: str  #: the command that repeats it
    config: dict[str, Any]
    data: dict[str, Any]
    networks: list[str]
    proxies: list[Proxy]
    trials: list[Trial]
    versions: dict[str, str] = field(default_factory=versions)
    machine: dict[str, str] = field(default_factory=machine)
    majority: float | None = None  #: test accuracy of always answering the most frequent training class
    format: Literal["attar-nas-1"] = "attar-nas-1"
    folder: Path | None = field(default=None, compare=False)  #: not stored

    def searches(self) -> dict[str, list[int]]:
        """The seeds of every row, in the order of the trials."""
        found: dict[str, list[int]] = {}
        for trial in self.trials:
            seeds = found.setdefault(trial.row, [])
            if trial.seed not in seeds:
                seeds.append(trial.seed)
        return found

    def of(self, row: str, seed: int) -> list[Trial]:
        """The trials of one search, in the order of ``networks``."""
        found = {trial.network: trial for trial in self.trials if (trial.row, trial.seed) == (row, seed)}
        return [found[name] for name in self.networks]

    def reference(self) -> list[Trial]:
        """The trials on the full data."""
        return self.of(FULL, self.searches()[FULL][0])

    def accuracies(self, row: str, seed: int) -> list[float]:
        """Validation accuracies of all networks; zero where training failed."""
        return [trial.validation or 0.0 for trial in self.of(row, seed)]

    def ranked(self, row: str, seed: int) -> list[int]:
        """Places of the networks in ``networks``, the best on validation first."""
        scores = self.accuracies(row, seed)
        return sorted(range(len(scores)), key=lambda place: -scores[place])

    def correlation(self, row: str, seed: int, top: int | None = None) -> float:
        """Spearman's correlation of validation accuracies with those of training on the full data.

        Args:
            row: What the networks were trained on.
            seed: The seed of that search.
            top: Only over this many networks that rank best in this search, as they are the ones that it would choose.
        """
        places = self.ranked(row, seed)[:top]
        ours, full = self.accuracies(row, seed), [trial.validation or 0.0 for trial in self.reference()]
        return spearman([ours[place] for place in places], [full[place] for place in places])

    def chosen(self, row: str, seed: int) -> Trial:
        """The network that the search chose, trained on the full data."""
        return self.reference()[self.ranked(row, seed)[0]]

    def seconds(self, row: str, seed: int, making: bool = True) -> float:
        """Processor seconds of a search; with ``making``, also those of making its proxy set."""
        spent = sum(trial.cost.cpu for trial in self.of(row, seed))
        sets = [proxy.cost.cpu for proxy in self.proxies if (proxy.method, proxy.seed) == (row, seed)]
        return spent + (sum(sets) if making else 0.0)

    def share(self, row: str, seed: int, making: bool = True) -> float:
        """Time of a search relative to that on the full data."""
        return self.seconds(row, seed, making) / self.seconds(FULL, self.searches()[FULL][0])

    def __repr__(self) -> str:
        lines = [f"Search over {len(self.networks)} networks on {self.data.get('name')}"]
        for row, seeds in self.searches().items():
            first = seeds[0]
            lines.append(
                f"{row}: correlation {self.correlation(row, first):.2f}, top {TOP} "
                f"{self.correlation(row, first, TOP):.2f}, chose {self.chosen(row, first).network}"
            )
        return "\n".join(lines)

    def save(self, path: str | Path) -> None:
        """Write one JSON file."""
        write_json(path, TypeAdapter(Nas).dump_python(self, mode="json", exclude={"folder"}))

    @staticmethod
    def load(path: str | Path) -> Nas:
        """Read and check a JSON file."""
        try:
            return replace(TypeAdapter(Nas).validate_python(read_json(path)), folder=Path(path).parent)
        except ValidationError as error:
            raise AttarError(f"{path} is no result of attar nas: make it again.") from error

    def csv(self) -> str:
        """One line per training."""
        head = ["trained_on", "seed", "network", "parameters", "validation", "test", "wall", "cpu", "problem"]
        lines: list[list[object]] = [[*head, "balanced", "worst", "majority", *CHAINS]]
        for trial in self.trials:
            scores = trial.parameters, trial.validation, trial.test, trial.cost.wall, trial.cost.cpu, trial.problem
            classes = trial.balanced, trial.worst, self.majority
            chains = [trial.chains.get(name) for name in CHAINS]
            lines.append([trial.row, trial.seed, trial.network, *scores, *classes, *chains])
        return csv_text(lines)

    def mixing(self) -> list[str]:
        """Temperature and largest R-hat of every row whose networks are chains."""
        rows = {
            row: together(trial.chains for seed in seeds for trial in self.of(row, seed))
            for row, seeds in self.searches().items()
        }
        return [f"{row}: {in_words(chains)}" for row, chains in rows.items() if chains]


def summarised(found: Nas, row: str, seeds: Sequence[int]) -> tuple[str, str, str, str, str]:
    """Means over seeds with 95 % t-intervals, as text.

    Correlation over all networks and over the top ones, test accuracy of the chosen network in percent, and time
    relative to the full data in percent, with and without making the proxy set.
    """
    return (
        _shown([found.correlation(row, seed) for seed in seeds], 2),
        _shown([found.correlation(row, seed, TOP) for seed in seeds], 2),
        _shown([100 * (found.chosen(row, seed).test or 0.0) for seed in seeds], 1),
        _shown([100 * found.share(row, seed) for seed in seeds], 1),
        _shown([100 * found.share(row, seed, making=False) for seed in seeds], 1),
    )


def recalls(found: Nas, row: str, seeds: Sequence[int]) -> tuple[str, str]:
    """Balanced accuracy and lowest recall of a class of the chosen network, in percent; dashes for older files."""
    chosen = [found.chosen(row, seed) for seed in seeds]
    pairs = [trial.balanced for trial in chosen], [trial.worst for trial in chosen]
    balanced, worst = (_shown([100 * value for value in values if value is not None], 1) for values in pairs)
    return balanced, worst


def _shown(values: Sequence[float], digits: int) -> str:
    """Mean ± t-interval of the values that are defined; a dash if none is."""
    if not (defined := known(values)):
        return "–"
    return over_seeds(defined, f".{digits}f")
