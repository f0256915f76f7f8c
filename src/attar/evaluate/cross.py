"""The coresets of a study with other networks than the one that made them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from attar.coreset import Coreset
from attar.data import Split
from attar.engine import run_all
from attar.engine.pool import Where
from attar.errors import AttarError
from attar.evaluate.study import STRICT, Run, Study, mean_and_error
from attar.evaluate.transfer import Transferred, transfer
from attar.files import read_json, write_json, write_text
from attar.nets.names import parse

TABLE = "transfer.json"


@checked(frozen=True, config=STRICT)
class Crossing:
    """One coreset of a study with one network."""

    method: str
    per_class: int
    seed: int
    draws: int  #: networks whose predictions are averaged
    found: Transferred

    @property
    def row(self) -> tuple[str, int]:
        """What is averaged over seeds."""
        return self.method, self.per_class


@dataclass(frozen=True)
class Crossings:
    """All of them: (method, size) × networks × seeds."""

    cells: list[Crossing]

    @property
    def networks(self) -> list[str]:
        """In the order in which they were asked for."""
        return list(dict.fromkeys(cell.found.network for cell in self.cells))

    def rows(self) -> Iterator[tuple[tuple[str, int], dict[str, list[float]]]]:
        """Test accuracies of all seeds by network; one that failed is left out."""
        for row in dict.fromkeys(cell.row for cell in self.cells):
            seen: dict[str, list[float]] = {}
            for cell in self.cells:
                if cell.row == row and cell.found.accuracy is not None:
                    seen.setdefault(cell.found.network, []).append(cell.found.accuracy)
            yield row, seen

    def save(self, folder: Path) -> None:
        """``transfer.json`` with every cell, and ``transfer.csv`` with the means."""
        write_json(folder / TABLE, TypeAdapter(list[Crossing]).dump_python(self.cells, mode="json"))
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(["method", "per_class", "network", "accuracy", "error"])
        for (method, size), found in self.rows():
            lines.writerows([method, size, network, *mean_and_error(values)] for network, values in found.items())
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
    """Train every network on every coreset of a study, with the study's budget and draws, and score it once on test.

    What an earlier call finished is not run again, and stays in the table.

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
    draws = int(study.config["draws"])
    earlier = Crossings.load(folder) or Crossings([])
    done = {(*cell.row, cell.seed, cell.found.network): cell for cell in earlier.cells if cell.draws == draws}
    runs = [run for run in study.runs if run.coreset is not None and run.evaluation == 0]
    wanted = [(run, network) for run in runs for network in networks]
    missing = [(run, network) for run, network in wanted if _key(run, network) not in done]
    crossings = Crossings(list(done.values()))
    for (run, network), found in run_all(_train, (split, folder, draws), missing, workers=workers, where=where):
        done[_key(run, network)] = Crossing(run.method, run.per_class or 0, run.seed, draws, found)
        order = [_key(*pair) for pair in wanted]
        crossings = Crossings([done[key] for key in [*(k for k in order if k in done), *(done.keys() - set(order))]])
        crossings.save(folder)
        if watch:
            watch(f"{run.method}-{run.per_class}-{run.seed}: {found}")
    return crossings


def _key(run: Run, network: str) -> tuple[str, int, int, str]:
    return run.method, run.per_class or 0, run.seed, network


def _train(shared: tuple[Split, Path, int], job: tuple[Run, str]) -> Transferred:
    (split, folder, draws), (run, network) = shared, job
    assert run.coreset is not None
    coreset = Coreset.load(folder / run.coreset)
    own, options = coreset.recipe.sampler, coreset.recipe.sampler_options
    return transfer(coreset, split, [network], seeds=[run.seed], draws=draws, sampler=own, options=options)[0]
