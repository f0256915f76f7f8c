"""How far the runs of a folder are, by its files alone: so anyone can watch, wherever the runs are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from attar.core.errors import AttarError, MissingFile
from attar.core.files import parsed, read_json, write_json
from attar.plan import Plan

JOBS = "jobs.json"
TAIL = 8192  #: bytes at the end of a log that hold its last line
ASKED = TypeAdapter(dict[str, int | None])


@dataclass(frozen=True)
class Running:
    """A reduction that has begun."""

    key: str
    step: int
    steps: int | None  #: of the whole reduction, if known
    loss: float | None


@dataclass(frozen=True)
class State:
    """The runs of a folder."""

    done: int
    total: int
    running: tuple[Running, ...] = ()
    changed: float = 0.0  #: when a run or a log was last written, in seconds since the epoch

    @property
    def over(self) -> bool:
        """Whether all runs that were asked for are finished."""
        return self.done >= self.total


def write_jobs(folder: Path, steps: Mapping[str, int | None]) -> None:
    """Write down which reductions were asked for, and how many steps they take, where they learn."""
    write_json(folder / JOBS, dict(steps))


def steps_of(decided: Plan | None) -> int | None:
    """The steps of a reduction, if it learns; None is none."""
    return None if decided is None or decided.descent is None else decided.descent.steps


def state(folder: Path) -> State:
    """How far the runs of a folder are; a folder of an earlier version has only those that are finished."""
    runs = {path.stem: path for path in (folder / "runs").glob("[!.]*.json")}
    logs = {path.stem: path for path in (folder / "logs").glob("[!.]*.jsonl")}
    try:
        asked = ASKED.validate_python(read_json(folder / JOBS))
    except MissingFile:
        asked = dict.fromkeys(runs)
    except ValidationError as error:
        raise AttarError(f"{folder / JOBS} is corrupt or incompatible: run the study again.") from error
    made = runs.keys() | {path.stem for path in (folder / "coresets").glob("[!.]*.safetensors")}
    running = [_running(logs[key], steps) for key, steps in asked.items() if key in logs and key not in made]
    times = [path.stat().st_mtime for path in (*runs.values(), *logs.values())]
    done = sum(key in runs for key in asked)
    return State(done, len(asked), tuple(one for one in running if one), max(times, default=0.0))


def _running(log: Path, steps: int | None) -> Running | None:
    """The last whole line of a log; None if it has none yet."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL))
        lines = file.read().split(b"\n")[:-1]
    for line in reversed(lines):
        told = _read(line)
        if isinstance(step := told.get("step"), int):
            loss = told.get("loss")
            return Running(log.stem, step, steps, loss if isinstance(loss, float) and isfinite(loss) else None)
    return None


def _read(line: bytes) -> dict[str, Any]:
    try:
        told = parsed(line.decode(), finite=False)
    except ValueError:  # the first line of the tail may be cut
        return {}
    return told if isinstance(told, dict) else {}
