"""Transfer: other networks trained on the coresets of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from attar.assess.metrics import STRICT, mean_and_error
from attar.assess.transfer import Transferred, transfer
from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import inside, read_json, set_aside, write_json, write_text
from attar.core.text import csv_text
from attar.coreset import Coreset
from attar.data import Split
from attar.engine.pool import LOCAL, Engine, run_all
from attar.infer.diagnose import in_words, together
from attar.nets.names import parse
from attar.study.cell import evaluation_seed
from attar.study.grid import Job, Progress
from attar.study.protocol import Evaluation
from attar.study.results import CHAINS, Study

TABLE = "transfer.json"
Made = tuple[Path, Mapping[str, Any] | None]  # the file of a coreset, and the protocol's rule for it


@checked(frozen=True, config=STRICT)
class Place:
    """Everything that identifies a cell of the table."""

    method: str
    per_class: int
    seed: int
    network: str
    coreset: str  #: its fingerprint, so that a replaced file is noticed
    draws: int  #: networks whose predictions are averaged
    sampler: str

    @property
    def row(self) -> tuple[str, int]:
        """What is averaged over seeds."""
        return self.method, self.per_class

    def __str__(self) -> str:
        return f"{self.method}, {self.per_class} per class, seed {self.seed}, {self.network}"


@checked(frozen=True, config=STRICT)
class Crossing:
    """One coreset of a study with one network."""

    place: Place
    found: Transferred


@dataclass(frozen=True)
class Crossings:
    """All cells: (method, size) × networks × seeds."""

    cells: list[Crossing]

    @property
    def networks(self) -> list[str]:
        """In the order in which they were asked for."""
        return list(dict.fromkeys(cell.place.network for cell in self.cells))

    def rows(self) -> Iterator[tuple[tuple[str, int], dict[str, list[float]]]]:
        """Test accuracies of the seeds by network; failures are in ``problems``."""
        for row in dict.fromkeys(cell.place.row for cell in self.cells):
            seen: dict[str, list[float]] = {}
            for cell in self.cells:
                if cell.place.row == row and cell.found.accuracy is not None:
                    seen.setdefault(cell.place.network, []).append(cell.found.accuracy)
            yield row, seen

    def groups(self) -> dict[tuple[str, int, str], list[Transferred]]:
        """What was found for the seeds of every method, size and network, in that order; failures included."""
        found: dict[tuple[str, int, str], list[Transferred]] = {}
        for row in dict.fromkeys(cell.place.row for cell in self.cells):
            for cell in self.cells:
                if cell.place.row == row:
                    found.setdefault((*row, cell.place.network), []).append(cell.found)
        return found

    def mixing(self) -> list[str]:
        """Temperature and largest R-hat of every method, size and network whose posteriors are chains."""
        rows = {key: together(one.chains for one in found) for key, found in self.groups().items()}
        return [
            f"{method} {size}, {name}: {in_words(chains)}" for (method, size, name), chains in rows.items() if chains
        ]

    @property
    def problems(self) -> list[str]:
        """What could not be trained, and why."""
        return [f"{cell.place}: {cell.found.problem}" for cell in self.cells if cell.found.problem]

    def save(self, folder: Path) -> None:
        """``transfer.json`` with every cell, and ``transfer.csv`` with the means."""
        write_json(folder / TABLE, TypeAdapter(list[Crossing]).dump_python(self.cells, mode="json"))
        head = ["method", "per_class", "network", "seeds", "accuracy", "standard_error"]
        lines: list[list[object]] = [[*head, "balanced", "worst", "majority", *CHAINS]]
        for (method, size, network), cells in self.groups().items():
            done = [cell for cell in cells if cell.accuracy is not None]
            if not done:
                continue
            scores = mean_and_error([cell.accuracy for cell in done if cell.accuracy is not None])
            classes = [_mean([getattr(cell, name) for cell in done]) for name in ("balanced", "worst", "majority")]
            chains = together(cell.chains for cell in done)
            values = [*scores, *classes, *(chains.get(name) for name in CHAINS)]
            lines.append([method, size, network, len(done), *values])
        write_text(folder / "transfer.csv", csv_text(lines))

    @staticmethod
    def load(folder: Path) -> Crossings | None:
        """The cells in a study's folder; None if there are none."""
        path = folder / TABLE
        try:
            return Crossings(TypeAdapter(list[Crossing]).validate_python(read_json(path)))
        except MissingFile:
            return None
        except DamagedFile as error:
            raise DamagedFile(path, error.problem, "move it away, and it is made again.") from error
        except ValidationError as error:
            raise DamagedFile(path, "is corrupt or incompatible", "move it away, and it is made again.") from error


def cross(
    study: Study,
    split: Split,
    folder: Path,
    networks: Sequence[str],
    *,
    engine: Engine = LOCAL,
    watch: Callable[[Progress], None] | None = None,
) -> Crossings:
    """Train every network on every coreset of a study, with its training, sampler and draws, and score it on test.

    Cells that are already done are not run again, unless their coreset has changed.

    Args:
        study: The study, whose coresets are in ``folder``.
        split: Its data.
        folder: The folder of the study; ``transfer.json`` is written there.
        networks: Names of networks.
        engine: Where they are trained.
        watch: Called with a ``Progress`` after every training.
    """
    for name in networks:
        parse(name)
    wanted = dict(_places(study, folder, networks))
    try:
        earlier = (Crossings.load(folder) or Crossings([])).cells
    except DamagedFile as damaged:
        set_aside(damaged, "its networks are trained again")
        earlier = []
    done = {cell.place: cell.found for cell in earlier if cell.place in wanted}
    asked = {(place.row, place.seed, place.network) for place in wanted}
    others = [cell for cell in earlier if (cell.place.row, cell.place.seed, cell.place.network) not in asked]
    missing = [(place, path) for place, path in wanted.items() if place not in done]
    shared = split, study.config["sampler"], study.config["sampler_options"]
    for (place, _), found in run_all(_train, shared, missing, engine):
        done[place] = found
        Crossings([*(Crossing(p, done[p]) for p in wanted if p in done), *others]).save(folder)
        if watch:  # without accuracies: they are of the test set, on which nothing may be chosen
            problem = f": {found.problem}" if found.problem else ""
            watch(Progress("transfers", len(done), len(wanted), f"{place}{problem}"))
    crossings = Crossings([*(Crossing(place, done[place]) for place in wanted), *others])
    crossings.save(folder)
    return crossings


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean, if all values are known."""
    known = [value for value in values if value is not None]
    return mean(known) if len(known) == len(values) else None


def _places(study: Study, folder: Path, networks: Sequence[str]) -> Iterator[tuple[Place, Made]]:
    """Every cell asked for, with the file of its coreset and the protocol's rule for it, if there is one."""
    for run in study.runs:
        if run.coreset is None or run.per_class is None or run.evaluation:
            continue
        rule, file = run.notes.get("evaluation"), run.coreset
        if rule and rule["best"] == "coreset":  # the last one, which the test set did not choose
            file = Job(run.method, run.per_class, run.seed).coreset
        if (path := inside(folder, file)) is None:
            raise AttarError(f"The coreset {file} is not in {folder}: run the study again in this folder.")
        coreset = Coreset.load(path, force=True)
        sampler = rule["sampler"] if rule else study.config["sampler"] or coreset.recipe.sampler
        draws, about = int((rule or study.config)["draws"]), coreset.data.fingerprint
        for network in networks:
            yield (
                Place(run.method, run.per_class, run.seed, network, about, draws, sampler),
                (path, rule),
            )


def _train(shared: tuple[Split, str | None, Mapping[str, Any]], job: tuple[Place, Made]) -> Transferred:
    (split, sampler, options), (place, (path, rule)) = shared, job
    coreset = Coreset.load(path, force=True).to(split.train.device)
    how = None if rule is None else Evaluation.of(rule)
    own = options if sampler else coreset.recipe.sampler_options
    (found,) = transfer(
        coreset,
        split,
        [place.network],
        # so that the study's own network gets the study's own scores
        seeds=[evaluation_seed(place.seed, number) for number in range(1 if how is None else how.evaluations)],
        draws=place.draws,
        training=None if how is None else how.trained(coreset.step_size),
        sampler=place.sampler,
        options=own if how is None else how.options,
    )
    return found
