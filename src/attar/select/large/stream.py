"""One pass through a table by a method that keeps a small state, saved after every job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attar.core.errors import DamagedFile, MissingFile
from attar.core.files import read_tensors, set_aside, write_tensors
from attar.select.large.jobs import parts_of, picked_rows
from attar.select.large.plan import LargePlan
from attar.select.large.rows import Rows
from attar.select.large.scorer import Scorer, labels_of, sampled
from attar.select.large.work import one_thread
from attar.select.stream import Streaming

FORMAT = "attar-stream-1"


def passed(plan: LargePlan, seen: Scorer, folder: Path, stamps: list[str], watch: Callable[[int, int], None]) -> Rows:
    """The picks after all rows; what was saved goes on if the files read so far did not change.

    Args:
        plan: The selection, by a method that streams.
        seen: What examples are seen through.
        folder: Where the state is saved.
        stamps: What every job is made from.
        watch: Called after every job.
    """
    method = plan.method
    assert isinstance(method, Streaming)
    path = folder / "stream.safetensors"
    with one_thread():
        known = picked_rows(plan.columns, plan.jobs, sampled(plan.jobs, method.wanted, plan.seed))
        state = method.begin(_features(seen, known, plan), sum(plan.sizes))
        start, state = _saved(path, state, stamps)
        for job in plan.jobs[start:]:
            for batch in parts_of(plan.columns, job, x=True):
                state = method.feed(state, _features(seen, batch, plan), torch.from_numpy(batch.numbers))
            _save(path, state, stamps[: job.number + 1])
            watch(job.number + 1, len(plan.jobs))
        found = method.finish(state)
    order = found.numbers.argsort()
    rows = picked_rows(plan.columns, plan.jobs, found.numbers[order].numpy(), x=False, keys=True)
    keys = None if rows.keys is None else rows.keys.to_pylist()
    blank = torch.zeros(len(order), dtype=torch.float64)
    made = Rows(found.numbers[order], found.scores[order].double(), blank, labels_of(rows, plan.known), keys=keys)
    return made.take(order.argsort())


def _features(seen: Scorer, batch: Any, plan: LargePlan) -> Tensor:
    return seen.view(seen.inputs(batch.x), labels_of(batch, plan.known)).features


def _save(path: Path, state: Any, stamps: list[str]) -> None:
    tensors = {name: torch.as_tensor(value) for name, value in state._asdict().items()}
    write_tensors(path, tensors, {"format": FORMAT, "stamps": " ".join(stamps)})


def _saved(path: Path, state: Any, stamps: list[str]) -> tuple[int, Any]:
    """The number of finished jobs and the state after them; none and the given state if nothing can be used."""
    try:
        tensors, header = read_tensors(path)
    except MissingFile:
        return 0, state
    except DamagedFile as error:
        set_aside(error, "the rows are read from the first")
        return 0, state
    done = header.get("stamps", "").split()
    if header.get("format") != FORMAT or done != stamps[: len(done)] or set(tensors) != set(state._fields):
        return 0, state
    plain = {
        name: tensors[name] if isinstance(value, Tensor) else type(value)(tensors[name].item())
        for name, value in state._asdict().items()
    }
    return len(done), type(state)(**plain)
