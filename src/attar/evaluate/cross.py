"""The coresets of a study with other networks than the one that made them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from attar.coreset import Coreset
from attar.data import Split
from attar.engine import run_all
from attar.engine.pool import Where
from attar.errors import AttarError
from attar.evaluate.study import STRICT, Study, mean_and_error
from attar.evaluate.transfer import Transferred, transfer
from attar.files import read_json, write_json, write_text
from attar.nets.names import parse

TABLE = "transfer.json"

Key = tuple[str, int, int, str]  # method, size, seed, network


@checked(frozen=True, config=STRICT)
class Crossing:
    """One coreset of a study with one network."""

    method: str
    per_class: int
    seed: int
    coreset: str  #: its fingerprint, so that another one in its place is not taken for it
    draws: int  #: networks whose predictions are averaged
    sampler: str
    found: Transferred

    @property
    def row(self) -> tuple[str, int]:
        """What is averaged over seeds."""
        return self.method, self.per_class

    @property
    def key(self) -> Key:
        """The place in the table."""
        return *self.row, self.seed, self.found.network


@dataclass(frozen=True)
class Crossings:
    """All of them: (method, size) × networks × seeds."""

    cells: list[Crossing]

    @property
    def networks(self) -> list[str]:
        """In the order in which they were asked for."""
        return list(dict.fromkeys(cell.found.network for cell in self.cells))

    def rows(self) -> Iterator[tuple[tuple[str, int], dict[str, list[float]]]]:
        """Test accuracies of the seeds by network; ``problems`` has those that failed."""
        for row in dict.fromkeys(cell.row for cell in self.cells):
            seen: dict[str, list[float]] = {}
            for cell in self.cells:
                if cell.row == row and cell.found.accuracy is not None:
                    seen.setdefault(cell.found.network, []).append(cell.found.accuracy)
            yield row, seen

    @property
    def problems(self) -> list[str]:
        """What could not be trained, and why."""
        return [
            f"{cell.method}, {cell.per_class} per class, seed {cell.seed}, {cell.found.network}: {cell.found.problem}"
            for cell in self.cells
            if cell.found.problem
        ]

    def save(self, folder: Path) -> None:
        """``transfer.json`` with every cell, and ``transfer.csv`` with the means."""
        write_json(folder / TABLE, TypeAdapter(list[Crossing]).dump_python(self.cells, mode="json"))
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(["method", "per_class", "network", "seeds", "accuracy", "error"])
        for (method, size), found in self.rows():
            for network, values in found.items():
                lines.writerow([method, size, network, len(values), *mean_and_error(values)])
        write_text(folder / "transfer.csv", text.getvalue())

    @staticmethod
    def load(folder: Path) -> Crossings | None:
        """Those of a study's folder, if it has any."""
        path = folder / TABLE
        if not path.exists():
            return None
        try:
            return Crossings(TypeAdapter(list[Crossing]).validate_python(read_json(path)))
        except ValidationError as error:
            raise AttarError(f"{path} was changed after it was written: remove it, and it is made again.") from error


def cross(
    study: Study,
    split: Split,
    folder: Path,
    networks: Sequence[str],
    *,
    workers: int = 1,
    where: Where = "local",
    watch: Callable[[str], None] | None = None,
) -> Crossings:
    """Train every network on every coreset of a study, with its budget, sampler and draws, and score it once on test.

    What an earlier call finished is not run again, unless its coreset has changed since.

    Args:
        study: Whose coresets lie in ``folder``.
        split: The data that it is about.
        folder: Where the study lies, and where ``transfer.json`` goes.
        networks: Names.
        workers: How many trainings at once.
        where: ``local`` or ``ray``.
        watch: Called with a line about every training that is there.
    """
    for name in networks:
        parse(name)
    folder, draws, sampler = Path(folder), int(study.config["draws"]), study.config["sampler"]
    options = study.config["sampler_options"]
    jobs = [
        _Job(run.method, run.per_class, run.seed, folder / run.coreset, network)
        for run in study.runs
        if run.coreset is not None and run.per_class is not None and run.evaluation == 0
        for network in networks
    ]
    prints = {path: Coreset.load(path).data.fingerprint() for path in dict.fromkeys(job.path for job in jobs)}
    samplers = {path: sampler or Coreset.load(path).recipe.sampler for path in prints}
    earlier = {cell.key: cell for cell in (Crossings.load(folder) or Crossings([])).cells}
    done = {
        job.key: earlier[job.key]
        for job in jobs
        if job.key in earlier
        and (earlier[job.key].coreset, earlier[job.key].draws, earlier[job.key].sampler)
        == (prints[job.path], draws, samplers[job.path])
    }
    missing = [job for job in jobs if job.key not in done]
    others = [cell for key, cell in earlier.items() if key not in {job.key for job in jobs}]
    for job, found in run_all(_train, (split, draws, sampler, options), missing, workers=workers, where=where):
        done[job.key] = Crossing(
            job.method, job.per_class, job.seed, prints[job.path], draws, samplers[job.path], found
        )
        Crossings([*(done[other.key] for other in jobs if other.key in done), *others]).save(folder)
        if watch:
            watch(f"{job.method}-{job.per_class}-{job.seed}: {found}")
    crossings = Crossings([*(done[job.key] for job in jobs), *others])
    crossings.save(folder)
    return crossings


class _Job(NamedTuple):
    method: str
    per_class: int
    seed: int
    path: Path
    network: str

    @property
    def key(self) -> Key:
        return self.method, self.per_class, self.seed, self.network


def _train(shared: tuple[Split, int, str | None, Mapping[str, Any]], job: _Job) -> Transferred:
    split, draws, sampler, options = shared
    coreset = Coreset.load(job.path)
    own = (sampler, options) if sampler else (coreset.recipe.sampler, coreset.recipe.sampler_options)
    return transfer(coreset, split, [job.network], seeds=[job.seed], draws=draws, sampler=own[0], options=own[1])[0]
