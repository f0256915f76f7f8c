"""The folder of a study: finished runs are kept, and all have the same settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import read_json, write_json
from attar.nets.fast.modes import NONE
from attar.study.cells import read_cells, write_cell
from attar.study.grid import Job
from attar.study.results import Run, Study

RUNS = TypeAdapter(list[Run])
OWN = ("options", "descent", "variants")  #: fields of a spec that hold settings of single methods
FORMAT = "attar-folder-2"  #: since 2, evaluation seeds are hashes


@dataclass(frozen=True)
class Settings:
    """The settings of a folder's runs, and the commands that made them, in order."""

    shared: Mapping[str, Any]
    methods: Mapping[str, Mapping[str, Any]]  #: settings of single methods
    commands: Sequence[str]

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """The settings of single methods as the fields of a spec: by kind, then by method."""
        return {kind: {name: own[kind] for name, own in self.methods.items() if own.get(kind)} for kind in OWN}


def of_methods(config: Mapping[str, Any], names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The settings of single methods in the fields of a spec: by method, then by kind."""
    return {name: {kind: config[kind][name] for kind in OWN if name in config[kind]} for name in names}


def finished(folder: Path) -> dict[str, list[Run]]:
    """All finished runs of a folder, by the key of the job; hidden files are ignored."""
    found = read_cells(folder / "runs", RUNS)
    for key, runs in found.items():
        if {Job(run.method, run.per_class, run.seed).key for run in runs} != {key}:
            path = folder / "runs" / f"{key}.json"
            raise DamagedFile(path, "holds another run than its name says", "move it away, and it is run again.")
    return found


def so_far(folder: Path) -> Study:
    """The study of the runs that a folder has now, finished or not; without runs if none has finished."""
    try:
        settled = read_json(folder / "config.json")
    except MissingFile:
        raise AttarError(f"{folder} holds no study: give a folder of `attar compare`.") from None
    if not isinstance(settled, dict) or settled.get("format") != FORMAT:
        raise AttarError(f"{folder} holds a study of an earlier version: run it again in another folder.")
    shared = dict(settled["shared"])
    about = shared.pop("data")
    return Study(" && ".join(settled["commands"]), shared, about, in_order(finished(folder), []), folder=folder)


def in_order(done: Mapping[str, list[Run]], jobs: Sequence[Job]) -> list[Run]:
    """All runs in order: methods and sizes as asked for, then those of earlier calls, then the full data."""
    runs = [run for job in jobs for run in done[job.key]]
    runs += [run for key, some in done.items() if key not in {job.key for job in jobs} for run in some]
    groups = list(dict.fromkeys((run.method, run.per_class) for run in runs))
    place = {group: (group[1] is None, number) for number, group in enumerate(groups)}
    return sorted(runs, key=lambda run: (place[run.method, run.per_class], run.seed, run.evaluation))


def finish(folder: Path, job: Job, runs: list[Run]) -> None:
    """Write a job's result."""
    write_cell(folder / "runs", job.key, RUNS, runs)


def began_with(folder: Path) -> str | None:
    """The acceleration of the runs of a folder; None if it holds no study."""
    try:
        found = read_json(folder / "config.json")
    except MissingFile:
        return None
    return str(found["shared"].get("accelerate", NONE)) if isinstance(found, dict) and "shared" in found else None


def settle(folder: Path, shared: Mapping[str, Any], methods: Mapping[str, Any], command: str | None = None) -> Settings:
    """Record the settings of a study; it may grow by methods, sizes and seeds, but settings must not differ.

    Args:
        folder: The folder of the study.
        shared: Settings of all runs.
        methods: Settings of each method asked for now.
        command: The command that makes the missing runs; None if none are missing.
    """
    shared, methods = json.loads(json.dumps([shared, methods]))
    path = folder / "config.json"
    try:
        before = read_json(path)
    except MissingFile:
        before = {"format": FORMAT, "shared": shared, "methods": {}}
    if not isinstance(before, dict) or before.pop("format", None) != FORMAT:
        raise AttarError(f"{folder} holds a study of an earlier version: choose another folder, or remove it.")
    try:
        found = TypeAdapter(Settings).validate_python({"commands": [], **before})
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise DamagedFile(path, f"is damaged ({where})", "restore it, or choose another folder.") from error
    if found.shared != shared or any(found.methods.get(name, own) != own for name, own in methods.items()):
        raise AttarError(f"{folder} holds a study with other settings: choose another folder or remove it.")
    commands = list(dict.fromkeys([*found.commands, *([command] if command else [])]))
    settled = Settings(shared, {**found.methods, **methods}, commands)
    write_json(path, {"format": FORMAT, **asdict(settled)})
    return settled
