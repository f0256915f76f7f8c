"""Selection from a table that need not fit into memory: from parts, then from their picks."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attar.core import registry
from attar.core.errors import AttarError, MissingFile
from attar.core.files import read_json, write_json
from attar.engine.pool import LOCAL, Engine, run_all
from attar.select.contract import Selection
from attar.select.keep import digest
from attar.select.large.jobs import Job
from attar.select.large.plan import LargePlan
from attar.select.large.rows import Rows
from attar.select.large.scorer import Scorer
from attar.select.large.stream import passed
from attar.select.large.work import Task, best_of, peak, union, work

Watch = Callable[[int, int], None]  #: called with the number of finished jobs and of all


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
    the bit (on processors of one kind). A finished job is a file in ``folder``, from which the same request goes on.

    Args:
        plan: The selection.
        folder: Where finished jobs are kept; by default a temporary folder.
        engine: Where jobs run.
        watch: Called after every job.
    """
    if folder is not None:
        return _run(plan, folder, engine, watch)
    with tempfile.TemporaryDirectory(prefix="attar-select-") as place:
        return _run(plan, Path(place), engine, watch)


def _run(plan: LargePlan, folder: Path, engine: Engine, watch: Watch | None) -> tuple[Selection, int]:
    _claim(folder, plan)
    task = plan.task(plan.scorer())
    store = _Store(folder, plan, task)
    if plan.how == "stream":
        return _streamed(plan, task, store, watch), peak()
    pending = [job for job in plan.jobs if store.load(job) is None]
    finished, memory = len(plan.jobs) - len(pending), 0
    with _keeping(lambda: finished, plan, folder):
        for job, done in run_all(work, task, pending, engine):
            done.rows.save(store.path(0, job.number), store.stamp(job))
            finished, memory = finished + 1, max(memory, done.memory)
            if watch is not None:
                watch(finished, len(plan.jobs))
    return _selection(plan, task, store), memory


def _streamed(plan: LargePlan, task: Task, store: _Store, watch: Watch | None) -> Selection:
    """The selection of a method that sees every row once; one process does it."""
    assert task.scorer is not None
    stamps = [store.stamp(job) for job in plan.jobs]
    finished = 0

    def note(done: int, total: int) -> None:
        nonlocal finished
        finished = done
        if watch is not None:
            watch(done, total)

    with _keeping(lambda: finished, plan, store.folder):
        return _named(plan, passed(plan, task.scorer, store.folder, stamps, note))


@contextmanager
def _keeping(finished: Callable[[], int], plan: LargePlan, folder: Path) -> Iterator[None]:
    """Errors say what is kept."""
    try:
        yield
    except AttarError as error:
        kept = f"{finished()} of {len(plan.jobs)} jobs are finished and kept in {folder}"
        raise AttarError(f"{str(error).removesuffix('.')}; {kept}: the same command goes on from there.") from error


def _selection(plan: LargePlan, task: Task, store: _Store) -> Selection:
    """One selection from the picks of all jobs."""
    if plan.how == "best":
        rows = next(store.all())
        for more in store.all(since=1):
            rows = best_of([rows, more], plan.sizes, plan.divided)
        rows = best_of([rows], plan.sizes, plan.divided)
    elif plan.how == "shares":
        rows = Rows.join(list(store.all()))
        rows = rows.take(rows.order.argsort(stable=True))  # so that the first picks are of all parts
    else:
        rows = _reduced(plan, task, store)
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


def _reduced(plan: LargePlan, task: Task, store: _Store) -> Rows:
    """Select from unions of picks that fit into a part, until one union is left."""
    level, found = 0, list(range(len(plan.jobs)))
    counts = [len(rows.numbers) for rows in store.all()]
    while sum(counts) > plan.part and len(found) > 1:
        level, groups = level + 1, _groups(counts, plan.part)
        counts = []
        for number, group in enumerate(groups):
            rows = store.reduced(task, level, number, [(level - 1, place) for place in group])
            counts.append(len(rows.numbers))
        found = list(range(len(groups)))
    rows = Rows.join([store.read(level, number) for number in found])
    last = union(task, 0, level + 1, rows, last=True)
    if last.counts is None or task.method.counted:
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


class _Store:
    """The files of finished jobs and unions; each names what it was made from."""

    def __init__(self, folder: Path, plan: LargePlan, task: Task) -> None:
        self.folder, self.plan = folder, plan
        self.seen = "" if task.scorer is None else _mark(task.scorer)

    def path(self, level: int, number: int) -> Path:
        return self.folder / f"picks-{level}-{number}.safetensors"

    def stamp(self, job: Job) -> str:
        """Changes if the job's files or what they are seen through change."""
        return _hash(self.plan.columns.table.stamp(job.segments), self.seen)

    def load(self, job: Job) -> Rows | None:
        return Rows.load(self.path(0, job.number), self.stamp(job))

    def all(self, since: int = 0) -> Iterator[Rows]:
        """The picks of all jobs, one after the other."""
        return (self.read(0, job.number) for job in self.plan.jobs[since:])

    def read(self, level: int, number: int) -> Rows:
        rows = self.load(self.plan.jobs[number]) if level == 0 else Rows.load(self.path(level, number), None)
        if rows is None:
            raise AttarError(f"{self.path(level, number)} was changed or removed while it was used: run again.")
        return rows

    def reduced(self, task: Task, level: int, number: int, places: Sequence[tuple[int, int]]) -> Rows:
        """The selection from picks of the level below, read if it was made from the same."""
        parts = [self.read(*place) for place in places]
        rows = Rows.join(parts)
        stamp = digest(rows.numbers, rows.scores)
        known = Rows.load(self.path(level, number), stamp)
        if known is None:
            known = union(task, number, level, rows, last=False)
            known.save(self.path(level, number), stamp)
        return known


def _claim(folder: Path, plan: LargePlan) -> None:
    """Write what is asked for into the folder, or compare it with what is there."""
    about = request(plan)
    path = folder / "request.json"
    try:
        known = read_json(path)
    except MissingFile:
        write_json(path, about)
        return
    for name, value in about.items():
        if known.get(name) != value:
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
        "sizes": list(plan.sizes),
        "seed": plan.seed,
        "network": digest(*weights) if weights else net,
        "training": asdict(plan.training),
    }
    plain: dict[str, Any] = json.loads(json.dumps(about))  # as it comes back from a file
    return plain


def _mark(seen: Scorer) -> str:
    tensors = [*seen.spec.transform.tensors().values(), torch.zeros(0) if seen.theta is None else seen.theta]
    return digest(*tensors)


def _hash(*texts: str) -> str:
    return hashlib.blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()
