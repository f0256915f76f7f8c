"""One pass through a table by a method that keeps a small state, saved after every turn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attar.core.errors import DamagedFile, MissingFile
from attar.core.files import read_tensors, set_aside, write_tensors
from attar.select.keep import digest
from attar.select.large.jobs import Turn, picked_rows, turns_read
from attar.select.large.plan import LargePlan
from attar.select.large.rows import Rows
from attar.select.large.scorer import Scorer, labels_of, sampled
from attar.select.large.store import Store
from attar.select.large.work import one_thread
from attar.select.stream import Streaming

FORMAT = "attar-stream-2"


def passed(plan: LargePlan, store: Store, watch: Callable[[int, int], None] | None) -> Rows:
    """The picks after all rows; what was saved goes on if the rows read so far did not change.

    Args:
        plan: The selection, by a method that streams.
        store: Where the state is saved.
        watch: Called with the number of parts that are read, and of all.
    """
    method, seen = plan.method, store.task.scorer
    assert isinstance(method, Streaming)
    assert seen is not None
    with one_thread():
        known = picked_rows(plan.columns, plan.jobs, sampled(plan.jobs, method.wanted, plan.seed))
        references = _features(seen, known, plan)
        state = method.begin(references, sum(plan.sizes))
        marks = _marks(references, store)
        done, state = max((_saved(path, state, marks) for path in _paths(store)), key=lambda found: found[0])
        for _, turns in groupby(plan.turns[done:], lambda turn: turn.job.number):
            for turn, parts in turns_read(plan.columns, list(turns), x=True):
                for batch in parts:
                    state = method.feed(state, _features(seen, batch, plan), torch.from_numpy(batch.numbers))
                _save(_paths(store)[_ends_a_file(plan, turn)], state, marks[turn.number])
                if watch is not None:
                    watch(turn.parts.stop, plan.parts)
        found = method.finish(state)
    order = found.numbers.argsort()
    rows = picked_rows(plan.columns, plan.jobs, found.numbers[order].numpy(), x=False, keys=True)
    keys = None if rows.keys is None else rows.keys.to_pylist()
    blank = torch.zeros(len(order), dtype=torch.float64)
    made = Rows(found.numbers[order], found.scores[order].double(), blank, labels_of(rows, plan.known), keys=keys)
    return made.take(order.argsort())


def _features(seen: Scorer, batch: Any, plan: LargePlan) -> Tensor:
    return seen.view(seen.inputs(batch.x), labels_of(batch, plan.known)).features


def _paths(store: Store) -> tuple[Path, Path]:
    """Where the last state is saved, and the last one at the end of a file, which holds if the next is repaired."""
    return store.folder / "stream.safetensors", store.folder / "stream-of-files.safetensors"


def _ends_a_file(plan: LargePlan, turn: Turn) -> bool:
    """Whether the next turn is of another file."""
    following = plan.turns[turn.number + 1 : turn.number + 2]
    return bool(following) and following[0].job.segments[0].file != turn.job.segments[-1].file


def _marks(references: Tensor, store: Store) -> list[str]:
    """What the state after every turn is made from."""
    before = digest(references)
    return [before := digest(before, mark.stamp) for mark in store.marks]


def _save(path: Path, state: Any, mark: str) -> None:
    tensors = {name: torch.as_tensor(value) for name, value in state._asdict().items()}
    write_tensors(path, tensors, {"format": FORMAT, "mark": mark})


def _saved(path: Path, state: Any, marks: list[str]) -> tuple[int, Any]:
    """The number of finished turns and the state after them; none and the given state if nothing can be used."""
    try:
        tensors, header = read_tensors(path)
    except MissingFile:
        return 0, state
    except DamagedFile as error:
        set_aside(error, "the rows are read from the first")
        return 0, state
    mark = header.get("mark", "")
    if header.get("format") != FORMAT or mark not in marks or set(tensors) != set(state._fields):
        return 0, state
    plain = {
        name: tensors[name] if isinstance(value, Tensor) else type(value)(tensors[name].item())
        for name, value in state._asdict().items()
    }
    return marks.index(mark) + 1, type(state)(**plain)
