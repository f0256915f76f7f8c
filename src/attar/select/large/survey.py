"""The first reading: classes and their numbers in every part, and whether keys repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attar.core.errors import AttarError, MissingFile, require
from attar.core.files import read_json, write_json
from attar.data.parts import InParts
from attar.data.parts.keys import require_unique
from attar.data.raw import MOST_CLASSES
from attar.select.large.jobs import Job


@dataclass(frozen=True)
class Survey:
    """What is known of a table before anything is selected."""

    values: list[int] | list[str]  #: the labels that occur, sorted; empty if none are asked for
    counts: list[list[int]]  #: rows of every part in every class; in one column if there are no labels

    @cached_property
    def table(self) -> Tensor:
        """``counts`` as a tensor, ``(parts, classes)``."""
        return torch.tensor(self.counts, dtype=torch.int64)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(map(str, self.values))

    def codes(self, labels: Any) -> Tensor:
        """The classes of an Arrow array of labels, as numbers from 0."""
        arrow, compute = require("pyarrow", "parquet"), require("pyarrow.compute", "parquet")
        found = compute.index_in(labels, value_set=arrow.array(self.values, type=labels.type))
        return torch.from_numpy(np.asarray(found).astype(np.int64))


def survey(columns: InParts, jobs: Sequence[Job], memory: int, kept: Path | None = None) -> Survey:
    """Read labels and keys once; nothing is read if neither is asked for.

    Args:
        columns: The table.
        jobs: How it is cut.
        memory: Bytes that the comparison of keys may take.
        kept: A file for the result, from which it is read again as long as the files of the table do not change.
    """
    stamp = columns.table.stamp([segment for job in jobs for segment in job.segments])
    if kept is not None:
        try:
            about = read_json(kept)
            if about["stamp"] == stamp:
                return Survey(about["values"], about["counts"])
        except (MissingFile, KeyError, TypeError):
            pass  # not made yet, or by another version: it is made again
    made = _survey(columns, jobs, memory)
    if kept is not None:
        write_json(kept, {"stamp": stamp, **asdict(made)})
    return made


def _survey(columns: InParts, jobs: Sequence[Job], memory: int) -> Survey:
    rows = sum(job.rows for job in jobs)
    if columns.id is not None:
        require_unique(lambda: _keys(columns, jobs), rows, memory, f"column {columns.id!r} of {columns.where}")
    if columns.label is None:
        return Survey([], [[size] for job in jobs for size in job.sizes])
    found = [_counted(columns, job) for job in jobs]
    values = sorted(set().union(*(counter for job in found for counter in job)))
    if len(values) > MOST_CLASSES:
        raise AttarError(
            f"Column {columns.label!r} of {columns.where} has {len(values)} different labels: give a column of classes."
        )
    return Survey(values, [[counter[value] for value in values] for job in found for counter in job])


def _counted(columns: InParts, job: Job) -> list[Counter[Any]]:
    """How often each label occurs in every part of a job."""
    ends = np.cumsum(job.sizes) + job.start
    found: list[Counter[Any]] = [Counter() for _ in job.sizes]
    for batch in columns.read(job.segments, job.start, x=False, keys=False):
        parts = np.searchsorted(ends, batch.numbers, side="right")
        for part in np.unique(parts):
            places = np.flatnonzero(parts == part)
            some = batch.labels.slice(int(places[0]), len(places))
            found[part].update({row["values"]: row["counts"] for row in some.value_counts().to_pylist()})
    return found


def _keys(columns: InParts, jobs: Sequence[Job]) -> Iterator[tuple[NDArray[np.int64], Any]]:
    for job in jobs:
        for batch in columns.read(job.segments, job.start, x=False):
            yield batch.numbers, batch.keys
