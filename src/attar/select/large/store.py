"""The folder of a selection: its request, and the files of finished parts and unions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from attar.core import registry
from attar.core.errors import AttarError, MissingFile
from attar.core.files import read_json, write_json
from attar.select.keep import digest
from attar.select.large.jobs import Turn
from attar.select.large.plan import LargePlan
from attar.select.large.rows import Mark, Rows
from attar.select.large.work import Task, union

FOUND = ("rows", "sizes")  #: what a request owes to the table, which may be repaired


class Store:
    """The files of finished turns and unions; each says what it was made from.

    Args:
        folder: Where they are.
        plan: The selection.
        task: What every part needs to know.
    """

    def __init__(self, folder: Path, plan: LargePlan, task: Task) -> None:
        self.folder, self.plan, self.task = folder, plan, task
        seen = [] if task.scorer is None else task.scorer.tensors
        self.seen = digest(*seen, json.dumps(plan.known.values))

    @staticmethod
    def of(plan: LargePlan, folder: Path) -> Store:
        """The store of a selection; what examples are seen through is found first."""
        return Store(folder, plan, plan.task(plan.scorer()))

    @cached_property
    def marks(self) -> list[Mark]:
        """The file of every turn; files of the table that change from now on are read again by the next run."""
        table = self.plan.columns.table
        files = [table.stamp(job.segments) for job in self.plan.jobs]
        return [
            Mark(self._path(0, turn.number), self._stamp(turn, files[turn.job.number]), turn.job.start)
            for turn in self.plan.turns
        ]

    def _stamp(self, turn: Turn, files: str) -> str:
        """Changes if the rows of a turn change, their seeds, how many are picked, or what they are seen through."""
        rows = [segment[1:] for segment in turn.job.segments]
        picks = [self.task.quotas(part, self.task.counts[part]) for part in turn.parts]
        return digest(files, self.seen, json.dumps([rows, list(turn.parts), turn.job.sizes, picks]))

    def pending(self) -> list[Turn]:
        """Turns that are not finished."""
        return [turn for turn in self.plan.turns if self.marks[turn.number].load() is None]

    @property
    def finished(self) -> int:
        """Parts that are finished."""
        return self.plan.parts - sum(len(turn.places) for turn in self.pending())

    def all(self) -> Iterator[Rows]:
        """The picks of all turns, one after the other."""
        return map(read, self.marks)

    def reduced(self, level: int, number: int, marks: Sequence[Mark]) -> tuple[Mark, int]:
        """The selection from picks of the level below, unless it was made from the same; and how many it has."""
        rows = Rows.join([read(mark) for mark in marks])
        held = [part for part in (rows.numbers, rows.scores, rows.y, rows.counts, rows.x) if part is not None]
        mark = Mark(self._path(level, number), digest(*held, self.seen))
        known = mark.load()
        if known is None:
            known = union(self.task, number, level, rows, last=False)
            mark.save(known)
        return mark, len(known.numbers)

    def _path(self, level: int, number: int) -> Path:
        return self.folder / f"picks-{level}-{number}.safetensors"


def read(mark: Mark) -> Rows:
    """Picks that are finished."""
    rows = mark.load()
    if rows is None:
        raise AttarError(f"{mark.path} was changed or removed while it was used: run again.")
    return rows


def claim(folder: Path, plan: LargePlan) -> None:
    """Write what is asked for into the folder, or compare it with what is there."""
    about = request(plan)
    path = folder / "request.json"
    try:
        known = read_json(path)
    except MissingFile:
        write_json(path, about)
        return
    for name, value in about.items():
        if name not in FOUND and known.get(name) != value:
            raise AttarError(
                f"{folder} holds parts of a selection with another {name} ({known.get(name)}, not {value}): delete "
                "it, or choose another output."
            )


def request(plan: LargePlan) -> dict[str, Any]:
    """All that decides a selection, as plain values."""
    columns, net = plan.columns, plan.network
    weights = [] if not isinstance(net, nn.Module) else [tensor.detach() for tensor in net.state_dict().values()]
    about = {
        "method": registry.entry_of(plan.method).name,
        "options": registry.options_of(plan.method),
        "source": columns.where,
        "features": [columns.features] if isinstance(columns.features, str) else columns.features,
        "label": columns.label,
        "id": columns.id,
        "rows": plan.rows,
        "part": plan.part,
        "budget": plan.asked,
        "sizes": list(plan.sizes),
        "seed": plan.seed,
        "network": digest(*weights) if weights else net,
        "training": asdict(plan.training),
    }
    plain: dict[str, Any] = json.loads(json.dumps(about))  # as it comes back from a file
    return plain
