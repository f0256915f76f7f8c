"""Parts of a table are read, and selected from."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from attar.core.streams import reduction, seed_of
from attar.data.parts import InParts
from attar.data.parts.in_parts import Batch
from attar.select.contract import Selection, Selector
from attar.select.large.jobs import Turn, turns_read
from attar.select.large.rows import Mark, Rows
from attar.select.large.scorer import Scorer, labels_of
from attar.select.large.survey import Survey
from attar.select.uniform import Uniform

#: How the picks of parts become one selection: those of highest score; a selection among them; all
#: of them; or no parts, as one state goes through all rows.
How = Literal["best", "again", "shares", "stream"]


class Todo(NamedTuple):
    """Turns of one job, and the files that their picks are written to."""

    turns: tuple[Turn, ...]
    marks: tuple[Mark, ...] = ()  #: none if the picks of a single turn are sent back


class Done(NamedTuple):
    """The picks, unless they are in files, and the peak memory of the process that made them."""

    rows: Rows | None
    memory: int


@dataclass(frozen=True)
class Task:
    """All that a job needs to know; it can be sent to other processes.

    Args:
        columns: The table.
        known: Its classes, and their numbers in every part.
        method: The method that selects from each part.
        sizes: Picks in all, of every class if ``divided``.
        divided: Whether classes have picks of their own.
        how: How the picks of parts become one selection.
        seed: The user's seed.
        scorer: How examples are seen; None if the method looks at none.
    """

    columns: InParts
    known: Survey
    method: Selector
    sizes: tuple[int, ...]
    divided: bool
    how: How
    seed: int
    scorer: Scorer | None

    @property
    def inner(self) -> Selector:
        """The method as parts use it: picks that are selected from again know what they stand for."""
        return self.method.counting() if self.how == "again" else self.method

    @cached_property
    def counts(self) -> Tensor:
        """Rows of every group in every part, ``(parts, groups)``."""
        return self.known.table if self.divided else self.known.table.sum(1, keepdim=True)

    @cached_property
    def before(self) -> Tensor:
        """The same in all parts before."""
        return self.counts.cumsum(0) - self.counts

    def quotas(self, part: int, counts: Tensor) -> list[int]:
        """The picks of every group of a part with so many rows in each.

        The shares of all parts sum to the sizes: those of the first parts together are what they are of all rows,
        rounded.
        """
        if self.how != "shares":
            return [min(size, int(have)) for size, have in zip(self.sizes, counts, strict=True)]
        every, before, size = self.counts.sum(0), self.before[part], torch.tensor(self.sizes)
        half = every // 2
        until, since = ((size * rows + half) // every for rows in (before + counts, before))
        quotas: list[int] = (until - since).tolist()
        return quotas


def work(task: Task, todo: Todo) -> Done:
    """Read the parts of turns and select from each; picks of finished turns are written at once."""
    rows = None
    with one_thread():
        for turn, parts in turns_read(task.columns, todo.turns, x=task.scorer is not None):
            rows = Rows.join([picked(task, part, batch) for part, batch in zip(turn.parts, parts, strict=True)])
            if todo.marks:
                todo.marks[todo.turns.index(turn)].save(rows)
    return Done(None if todo.marks else rows, peak())


def picked(task: Task, number: int, batch: Batch) -> Rows:
    """The picks of a part, with their keys, and as the network takes them if they are selected from again."""
    y, index = labels_of(batch, task.known), torch.from_numpy(batch.numbers)
    x = None if task.scorer is None else task.scorer.inputs(batch.x)
    blank = torch.zeros(len(y), dtype=torch.float64)
    gen = reduction(seed_of("part", task.seed, 0, number))
    found = pick(task, Rows(index, blank, blank, y, x=x), number, gen)
    if batch.keys is not None:
        found = found._replace(keys=batch.keys.take(found.numbers.numpy() - batch.numbers[0]).to_pylist())
    return found if task.how == "again" else found._replace(x=None)


def union(task: Task, number: int, level: int, rows: Rows, *, last: bool) -> Rows:
    """Select again from picks of several turns; at the last level as the user's method says."""
    gen = reduction(seed_of("part", task.seed, level, number))
    with one_thread():
        return pick(replace(task, how="best") if last else task, rows.take(rows.numbers.argsort()), number, gen)


def pick(task: Task, rows: Rows, number: int, gen: torch.Generator) -> Rows:
    """Pick from rows in memory, class by class if the task is divided."""
    groups = range(len(task.sizes))
    member = [rows.y == c if task.divided else torch.ones_like(rows.y, dtype=torch.bool) for c in groups]
    counts = torch.tensor([int(mask.sum()) for mask in member])
    found: list[Rows] = []
    view = None
    for c, size in enumerate(task.quotas(number, counts)):
        if not size:
            continue
        places = member[c].nonzero().flatten()
        if isinstance(task.method, Uniform):
            chosen = reservoir(len(places), size, gen)
        else:
            assert task.scorer is not None
            assert rows.x is not None
            if view is None:
                view = task.scorer.view(rows.x, rows.y, rows.counts if task.method.counted else None)
            chosen = task.inner.select(view.part(places, c if task.divided else None), size, gen)
        found.append(_chosen(rows, places, chosen))
    return Rows.join(found) if found else rows.take(torch.zeros(0, dtype=torch.int64))


def reservoir(n: int, size: int, gen: torch.Generator) -> Selection:
    """The rows of highest random number: a uniform sample, and so are the highest of several parts together."""
    best = torch.rand(n, generator=gen, dtype=torch.float64).topk(min(size, n))
    return Selection(best.indices, best.values)


def _chosen(rows: Rows, places: Tensor, chosen: Selection) -> Rows:
    size = len(chosen.indices)
    order = (torch.arange(size, dtype=torch.float64) + 0.5) / size
    counts = None if chosen.weights is None else chosen.weights.float()
    return rows.take(places[chosen.indices])._replace(scores=chosen.scores.double(), order=order, counts=counts)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for each job: sums then have one order, so that every engine gives the same bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def peak() -> int:
    """The most memory that this process ever had, in bytes.

    On Linux the usual call also counts the process that started this one.
    """
    if (status := Path("/proc/self/status")).exists():
        return 1024 * int(status.read_text().split("VmHWM:")[1].split()[0])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def best_of(rows: Sequence[Rows], sizes: Sequence[int], divided: bool) -> Rows:
    """The rows of highest score, of every class if divided; the first in a tie."""
    every = Rows.join(rows)
    if not divided:
        return every.take(every.scores.argsort(descending=True, stable=True)[: sizes[0]])
    found = []
    for c, size in enumerate(sizes):
        places = (every.y == c).nonzero().flatten()
        found.append(places[every.scores[places].argsort(descending=True, stable=True)[:size]])
    return every.take(torch.cat(found))
