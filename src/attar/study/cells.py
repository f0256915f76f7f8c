"""The cells of a grid: one JSON file each, so that an interrupted grid resumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from attar.condense.driver import OtherRecipe
from attar.condense.observers import Observer
from attar.core.errors import DamagedFile, Diverged, MissingFile
from attar.core.files import read_json, set_aside, write_json
from attar.coreset import Coreset
from attar.engine.pool import LOCAL, Engine, run_all
from attar.plan import Plan
from attar.reduce import run
from attar.study.grid import Progress

Result = TypeVar("Result")
Shared = TypeVar("Shared")


class Named(Protocol):
    """A job with a name that is unique in its grid and safe as a file name."""

    @property
    def key(self) -> str:
        """The name."""
        ...


Cell = TypeVar("Cell", bound=Named)


def read_cells(folder: Path, kind: TypeAdapter[Result]) -> dict[str, Result]:
    """All finished cells in a folder, by key; hidden files are ignored, and damaged ones are errors."""
    return {path.stem: _read(path, kind) for path in sorted(folder.glob("[!.]*.json"))}


def _read(path: Path, kind: TypeAdapter[Result]) -> Result:
    remedy = "move it away, and it is run again."
    try:
        return kind.validate_python(read_json(path))
    except DamagedFile as error:
        raise DamagedFile(path, error.problem, remedy) from error
    except ValidationError as error:
        raise DamagedFile(path, "is corrupt or incompatible", remedy) from error


def usable(read: Callable[[], dict[str, Result]]) -> dict[str, Result]:
    """What ``read`` finds of cells; damaged files are renamed, with a warning, until it finds no more of them."""
    while True:
        try:
            return read()
        except DamagedFile as damaged:
            set_aside(damaged, "it is run again")


def readable(path: Path, read: Callable[[Path], object]) -> bool:
    """Whether ``read`` can read a file; one that is damaged is renamed, with a warning, and counts as missing."""
    try:
        read(path)
    except MissingFile:
        return False
    except DamagedFile as damaged:
        set_aside(damaged, "it is made again")
        return False
    return True


def intact(path: Path) -> bool:
    """Whether the coreset of a finished cell can be read, as ``readable``."""
    return readable(path, partial(Coreset.load, force=True))


def reduced(decided: Plan, observers: Sequence[Observer], checkpoint: Path, seconds: float | None) -> Coreset:
    """The coreset of a cell; a checkpoint that a run with other settings left is kept under another name."""
    try:
        return run(decided, observers, checkpoint, checkpoint_every=seconds)
    except OtherRecipe as other:
        set_aside(other, "the run starts anew")
    return run(decided, observers, checkpoint, checkpoint_every=seconds)


def write_cell(folder: Path, key: str, kind: TypeAdapter[Result], result: Result) -> None:
    """Write the result of one cell."""
    write_json(folder / f"{key}.json", kind.dump_python(result, mode="json"))


def complete(jobs: Sequence[Named], folder: Path) -> bool:
    """Whether every cell has its file."""
    return all((folder / f"{job.key}.json").exists() for job in jobs)


def attempt(work: Callable[[Shared, Cell], Result], shared: Shared, job: Cell) -> Result | Diverged:
    """The result of a job, or why it diverged, so that the others still run."""
    try:
        return work(shared, job)
    except Diverged as error:
        return error


def require_converged(diverged: Mapping[str, Diverged]) -> None:
    """Raise if jobs diverged, with the reason of the first."""
    if diverged:
        first, reason = next(iter(diverged.items()))
        raise Diverged(f"{', '.join(diverged)} diverged; all other runs are finished and kept. {first}: {reason}")


def run_cells(
    work: Callable[[Shared, Cell], Result],
    shared: Shared,
    jobs: Sequence[Cell],
    folder: Path,
    kind: TypeAdapter[Result],
    *,
    line: Callable[[Result], str],
    whole: Callable[[Cell], bool] = lambda _: True,
    stage: str = "runs",
    engine: Engine = LOCAL,
    watch: Callable[[Progress], None] | None = None,
) -> dict[str, Result]:
    """Run the cells that have no file yet, and return the results of all files in the folder, by key.

    If cells diverge, the others are run and written before the error is raised.

    Args:
        work: Runs one cell; a module-level function.
        shared: What every cell needs; sent once to each worker.
        jobs: The cells asked for.
        folder: The folder of the files.
        kind: The type of a result.
        line: What to say of a result while the grid runs; never a test score.
        whole: Whether the other files of a finished cell can be read; if not, it is run again.
        stage: What is counted.
        engine: Where they run.
        watch: Called with a ``Progress`` for every cell, including those of earlier calls.
    """
    done, count = usable(partial(read_cells, folder, kind)), 0

    def tell(job: Cell, kept: bool) -> None:
        nonlocal count
        count += 1
        if watch:
            watch(Progress(stage, count, len(jobs), f"{job.key}: {line(done[job.key])}", kept))

    kept = {job.key for job in jobs if job.key in done and whole(job)}
    for job in jobs:
        if job.key in kept:
            tell(job, kept=True)
    missing = [job for job in jobs if job.key not in kept]
    diverged: dict[str, Diverged] = {}
    for job, result in run_all(partial(attempt, work), shared, missing, engine):
        if isinstance(result, Diverged):
            diverged[job.key] = result
            continue
        done[job.key] = result
        write_cell(folder, job.key, kind, result)
        tell(job, kept=False)
    require_converged(diverged)
    return done
