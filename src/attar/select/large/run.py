"""Selection from a table that need not fit into memory: from parts, then from their picks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from attar.core.errors import AttarError
from attar.engine.pool import LOCAL, Engine, run_all
from attar.select.contract import Selection
from attar.select.large.jobs import Turn
from attar.select.large.plan import LargePlan
from attar.select.large.rows import Rows
from attar.select.large.store import Store, claim, read
from attar.select.large.stream import passed
from attar.select.large.work import Todo, best_of, peak, union, work

Watch = Callable[[int, int], None]  #: called with the number of finished parts and of all


def run(
    plan: LargePlan,
    folder: Path | None = None,
    *,
    engine: Engine = LOCAL,
    watch: Watch | None = None,
) -> tuple[Selection, int]:
    r"""Select from every part, then from the picks of all; returns the selection and the most memory of a process.

    k-center: if every part gives all k picks, the radius is at most :math:`2 (r + 1)` times the best possible after r
    rounds (4 after one), however rows are ordered (Malkomes et al. 2015). Facility location (craig, adacore, lcmat-s):
    a pick of a part stands for the rows nearest to it, and counts as often when picks are selected from again. With
    picks U of parts and picks S of U,

    .. math:: \sum_i \min_{s \in S} d_{is} \le \sum_i \min_{u \in U} d_{iu} + \sum_{u \in U} c_u \min_{s \in S} d_{us}

    by the triangle inequality, and both sums are what is minimised greedily; there is no constant factor. Methods that
    rank rows by scores of their own lose nothing, and uniform is a uniform sample. Where every part gives its share of
    a large number of picks, there is no guarantee.

    The same parts have the same seeds on every engine, and every job runs on one thread, so that picks are the same to
    the bit (on processors of one kind). Finished parts are files in ``folder``, from which the same request goes on.

    Args:
        plan: The selection.
        folder: Where finished parts are kept; by default nowhere.
        engine: Where jobs run.
        watch: Called after every job.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="attar-select-") as place:
            return _run(plan, Store.of(plan, Path(place)), engine, watch)
    claim(folder, plan)
    with _keeping(folder):
        store = Store.of(plan, folder)
    with _keeping(folder, store):
        return _run(plan, store, engine, watch)


def _run(plan: LargePlan, store: Store, engine: Engine, watch: Watch | None) -> tuple[Selection, int]:
    if plan.how == "stream":
        return _named(plan, passed(plan, store, watch)), peak()
    pending = store.pending()
    left, memory = sum(len(turn.places) for turn in pending), 0
    for todo, done in run_all(work, store.task, _todo(pending, store, engine), engine):
        if done.rows is not None:
            store.marks[todo.turns[0].number].save(done.rows)
        left, memory = left - sum(len(turn.places) for turn in todo.turns), max(memory, done.memory)
        if watch is not None:
            watch(plan.parts - left, plan.parts)
    return _selection(plan, store), memory


def _todo(pending: Sequence[Turn], store: Store, engine: Engine) -> list[Todo]:
    """The turns of each job together, whose picks are written where they are made; on Ray one by one.

    Nodes of Ray need not have the folder: they send the picks of a turn, and read what is before it again.
    """
    if engine.where == "ray":
        return [Todo((turn,)) for turn in pending]
    jobs = [tuple(turns) for _, turns in groupby(pending, lambda turn: turn.job.number)]
    return [Todo(turns, tuple(store.marks[turn.number] for turn in turns)) for turns in jobs]


@contextmanager
def _keeping(folder: Path, store: Store | None = None) -> Iterator[None]:
    """Errors say what is kept."""
    try:
        yield
    except AttarError as error:
        done, said = "finished parts are", str(error).removesuffix(".")
        if store is not None and store.plan.how != "stream":
            done = f"{store.finished} of {store.plan.parts} parts are finished and"
        raise AttarError(f"{said}; {done} kept in {folder}: the same command goes on from there.") from error


def _selection(plan: LargePlan, store: Store) -> Selection:
    """One selection from the picks of all parts."""
    if plan.how == "best":
        every = store.all()
        rows = next(every)
        for more in every:
            rows = best_of([rows, more], plan.sizes, plan.divided)
        rows = best_of([rows], plan.sizes, plan.divided)
    elif plan.how == "shares":
        rows = Rows.join(list(store.all()))
        rows = rows.take(rows.order.argsort(stable=True))  # so that the first picks are of all parts
    else:
        rows = _reduced(plan, store)
    return _named(plan, rows)


def _named(plan: LargePlan, rows: Rows) -> Selection:
    """Rows as a selection, with the user's keys and classes."""
    return Selection(
        rows.numbers,
        rows.scores.float(),
        rows.counts,
        rows.numbers.tolist() if rows.keys is None else rows.keys,
        [plan.known.names[c] for c in rows.y.tolist()] if plan.known.values else None,
    )


def _reduced(plan: LargePlan, store: Store) -> Rows:
    """Select from unions of picks that fit into a part, until one union is left.

    The picks of a turn fit into a part, and those of a union into a quarter of one, so every round leaves fewer.
    """
    level, marks = 0, store.marks
    counts = [len(rows.numbers) for rows in store.all()]
    while sum(counts) > plan.part:
        level, groups = level + 1, _groups(counts, plan.part)
        made = [store.reduced(level, number, [marks[k] for k in group]) for number, group in enumerate(groups)]
        marks, counts = [mark for mark, _ in made], [count for _, count in made]
    rows = Rows.join([read(mark) for mark in marks])
    last = union(store.task, 0, level + 1, rows, last=True)
    if last.counts is None or plan.method.counted:
        return last
    return last._replace(counts=last.counts * (plan.rows / len(rows.numbers)))  # scaled to all rows


def _groups(counts: Sequence[int], most: int) -> list[list[int]]:
    """Consecutive places whose counts sum to at most ``most``."""
    groups: list[list[int]] = [[]]
    total = 0
    for place, count in enumerate(counts):
        if groups[-1] and total + count > most:
            groups.append([])
            total = 0
        groups[-1].append(place)
        total += count
    return groups
