"""Tables are cut into jobs, and jobs into parts of nearly equal size."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attar.data import InParts
from attar.data.parts.tables import Segment
from attar.select.large.jobs import jobs_of, parts_of, picked_rows, turns_of, turns_read
from tests.tables import KEYS, X, parquet


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 60))
def test_every_row_is_in_one_part_and_no_part_is_too_large(rows: list[int], part: int) -> None:
    jobs = jobs_of([Segment("f", k, n) for k, n in enumerate(rows)], part)
    assert [segment for job in jobs for segment in job.segments] == [Segment("f", k, n) for k, n in enumerate(rows)]
    sizes = [size for job in jobs for size in job.sizes]
    assert sum(sizes) == sum(rows)
    assert max(sizes) <= part
    assert all(max(job.sizes) - min(job.sizes) <= 1 for job in jobs)
    assert [job.number for job in jobs] == list(range(len(jobs)))
    assert [job.start for job in jobs] == np.cumsum([0, *(job.rows for job in jobs[:-1])]).tolist()
    assert [job.first for job in jobs] == np.cumsum([0, *(len(job.sizes) for job in jobs[:-1])]).tolist()
    for a, b in pairwise(jobs):  # otherwise they would be one
        assert a.rows + b.segments[0].rows > part


@given(st.lists(st.integers(1, 50), min_size=1, max_size=10), st.integers(1, 60), st.integers(1, 9))
def test_turns_are_all_parts_in_order_and_each_of_one_job(rows: list[int], part: int, most: int) -> None:
    jobs = jobs_of([Segment("f", k, n) for k, n in enumerate(rows)], part)
    turns = turns_of(jobs, most)
    assert [part for turn in turns for part in turn.parts] == list(range(sum(len(job.sizes) for job in jobs)))
    assert [turn.number for turn in turns] == list(range(len(turns)))
    assert all(1 <= len(turn.places) <= most for turn in turns)


def test_turns_are_read_without_those_between_them(tmp_path: Path) -> None:
    columns = InParts(parquet(tmp_path, files=1, group=300), "emb")
    (job,) = jobs_of(columns.table.segments(), 30)
    turns = turns_of([job], 3)
    found = [list(parts) for _, parts in turns_read(columns, [turns[1], turns[3]], x=True)]
    rows = [np.concatenate([part.numbers for part in parts]).tolist() for parts in found]
    assert rows == [list(range(90, 180)), list(range(270, 300))]


@pytest.mark.parametrize("part", [37, 100, 250, 4096])
def test_parts_are_the_rows_of_the_table_in_order(part: int, tmp_path: Path) -> None:
    columns = InParts(parquet(tmp_path), "emb", "y", "key")
    jobs = jobs_of(columns.table.segments(), part)
    parts = [found for job in jobs for found in parts_of(columns, job, x=True)]
    assert tuple(len(found.numbers) for found in parts) == tuple(size for job in jobs for size in job.sizes)
    assert np.array_equal(np.concatenate([found.x for found in parts]), X)
    assert [key for found in parts for key in found.keys.to_pylist()] == KEYS


def test_picked_rows_are_read_from_their_jobs_alone(tmp_path: Path) -> None:
    columns = InParts(parquet(tmp_path), "emb")
    jobs = jobs_of(columns.table.segments(), 100)
    assert columns.kind == "vectors"
    (tmp_path / "2.parquet").unlink()  # no row of it is asked for
    rows = np.array([0, 99, 100, 555])
    assert np.array_equal(picked_rows(columns, jobs, rows).x, X[rows])
