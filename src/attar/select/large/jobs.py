"""The work cut into jobs, which are read together, of turns, which are kept together, of parts to select from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attar.data.parts.in_parts import Batch, InParts, chained, joined
from attar.data.parts.tables import Segment


class Job(NamedTuple):
    """Consecutive segments that are read together, and their parts, of nearly equal size."""

    number: int  #: from 0
    start: int  #: number of the first row
    first: int  #: number of the first part
    sizes: tuple[int, ...]  #: rows of every part
    segments: tuple[Segment, ...]

    @property
    def rows(self) -> int:
        """Rows of all parts."""
        return sum(self.sizes)


class Turn(NamedTuple):
    """Consecutive parts of a job whose picks are kept in one file."""

    number: int  #: from 0, through all jobs
    job: Job
    places: range  #: of the parts in their job

    @property
    def parts(self) -> range:
        """Numbers of the parts."""
        return range(self.job.first + self.places.start, self.job.first + self.places.stop)


def jobs_of(segments: Sequence[Segment], part: int) -> list[Job]:
    """All jobs; small segments share a part of at most ``part`` rows, large ones have several parts."""
    jobs: list[Job] = []
    held: list[Segment] = []
    for segment in segments:
        if held and sum(s.rows for s in held) + segment.rows > part:
            jobs.append(_job(jobs, held, part))
            held = []
        held.append(segment)
    return [*jobs, _job(jobs, held, part)] if held else jobs


def _job(before: Sequence[Job], segments: Sequence[Segment], part: int) -> Job:
    last = before[-1] if before else Job(-1, 0, 0, (), ())
    rows = sum(segment.rows for segment in segments)
    count = -(-rows // part)
    sizes = tuple(rows * (k + 1) // count - rows * k // count for k in range(count))
    return Job(last.number + 1, last.start + last.rows, last.first + len(last.sizes), sizes, tuple(segments))


def turns_of(jobs: Sequence[Job], most: int) -> list[Turn]:
    """All jobs in turns of at most so many parts."""
    cut = [(job, places[at : at + most]) for job in jobs for places in [range(len(job.sizes))] for at in places[::most]]
    return [Turn(number, job, places) for number, (job, places) in enumerate(cut)]


def turns_read(columns: InParts, turns: Sequence[Turn], *, x: bool) -> Iterator[tuple[Turn, Iterator[Batch]]]:
    """Turns of one job with their parts, which must be taken before the next turn; parts of other turns are passed."""
    parts, at = parts_of(columns, turns[0].job, x=x), 0
    for turn in turns:
        yield turn, islice(parts, turn.places.start - at, turn.places.stop - at)
        at = turn.places.stop


def parts_of(columns: InParts, job: Job, *, x: bool) -> Iterator[Batch]:
    """The parts of a job, each in memory as a whole, one after the other."""
    held: list[Batch] = []
    sizes = list(job.sizes)
    for batch in columns.read(job.segments, job.start, x=x):
        rest: Batch | None = batch
        while rest is not None:
            room = sizes[0] - sum(len(part.numbers) for part in held)
            held.append(_rows(rest, 0, room))
            rest = _rows(rest, room, None) if len(rest.numbers) > room else None
            if len(held[-1].numbers) == room:
                yield _joined(held)
                held, sizes = [], sizes[1:]


def picked_rows(
    columns: InParts, jobs: Sequence[Job], rows: NDArray[np.int64], *, x: bool = True, keys: bool = False
) -> Batch:
    """Some rows of the table, in increasing order; jobs without any of them are not read."""
    found: list[Batch] = []
    for job in jobs:
        some = rows[np.searchsorted(rows, job.start) : np.searchsorted(rows, job.start + job.rows)]
        if len(some):
            found += columns.read(job.segments, job.start, x=x, keys=keys, only=some)
    return _joined(found)


def _rows(batch: Batch, start: int, size: int | None) -> Batch:
    stop = None if size is None else start + size
    arrow = (None if part is None else part.slice(start, size) for part in (batch.labels, batch.keys))
    return Batch(batch.numbers[start:stop], None if batch.x is None else batch.x[start:stop], *arrow)


def _joined(parts: Sequence[Batch]) -> Batch:
    def chain(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else chained(values)

    x = None if parts[0].x is None else joined([part.x for part in parts if part.x is not None])
    return Batch(np.concatenate([part.numbers for part in parts]), x, chain("labels"), chain("keys"))
