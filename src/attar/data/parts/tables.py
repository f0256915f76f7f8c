"""Tables that are read in pieces: Parquet, Arrow and memory-mapped files, and data sets of Hugging Face."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import numpy as np

from attar.core.errors import AttarError, require
from attar.core.files import require_read
from attar.data.parts import arrays, files

BUFFER = 1 << 20  #: bytes of a compressed column that are read at once
PIECE = 4096  #: rows of a piece where a file has no pieces of its own
ROWS, LABEL = "rows", "label"  #: names of the columns of .npy files


class Segment(NamedTuple):
    """Rows that can be read without those before them."""

    file: str
    group: int  #: which row group, record batch or piece of the file
    rows: int


class Table(Protocol):
    """A table in segments; it can be sent to other processes."""

    def schema(self, columns: Sequence[str]) -> Any:
        """The Arrow schema of its first file, if these columns are the same in all."""
        ...

    def segments(self) -> list[Segment]:
        """All segments, in order."""
        ...

    def batches(self, segments: Sequence[Segment], columns: Sequence[str], size: int) -> Iterator[Any]:
        """Arrow record batches of at most ``size`` rows, in order."""
        ...

    def stamp(self, segments: Sequence[Segment]) -> str:
        """Changes if the files of these segments change."""
        ...


@dataclass(frozen=True)
class Files:
    """Files of one kind that lie in this order.

    Args:
        paths: Paths or URLs; all of one kind.
        labels: Files with the label of every row, one for each of ``paths``; for .npy files only.
    """

    paths: tuple[str, ...]
    labels: tuple[str, ...] = ()

    def schema(self, columns: Sequence[str]) -> Any:
        found = [(path, self._schema(path)) for path in self.paths]
        (first, known), *others = found
        for path, schema in others:
            for name in columns:
                here, there = (s.field(name).type if name in s.names else "missing" for s in (schema, known))
                if here != there:
                    raise AttarError(
                        f"Column {name!r} is {here} in {path} but {there} in {first}: write all files with one schema."
                    )
        return known

    def segments(self) -> list[Segment]:
        return [segment for path in self.paths for segment in self._segments(path)]

    def batches(self, segments: Sequence[Segment], columns: Sequence[str], size: int) -> Iterator[Any]:
        for path, some in groupby(segments, lambda segment: segment.file):
            with whole(path):
                yield from self._batches(path, list(some), list(columns), size)

    def stamp(self, segments: Sequence[Segment]) -> str:
        used = dict.fromkeys(segment.file for segment in segments)
        given = [self._given(path) for path in used]
        return " ".join(files.stamp(path) for path in [*used, *given] if path is not None)

    def _given(self, path: str) -> str | None:
        """The file with the labels of this one."""
        return self.labels[self.paths.index(path)] if self.labels else None

    def _schema(self, path: str) -> Any:
        if path.endswith(".npy"):
            columns = [ROWS] if self._given(path) is None else [ROWS, LABEL]
            with whole(path):
                return next(self._rows(path, [Segment(path, 0, 1)], columns, 1)).schema
        with whole(path), files.opened(path) as file:
            if path.endswith(".parquet"):
                return require("pyarrow.parquet", "parquet").read_schema(file)
            with _arrow(file) as reader:
                return reader.schema

    def _segments(self, path: str) -> list[Segment]:
        if path.endswith(".npy"):
            with whole(path), arrays.opened(path) as array:
                n = len(array)
            return [Segment(path, start // PIECE, min(PIECE, n - start)) for start in range(0, n, PIECE)]
        with whole(path), files.opened(path) as file:
            if path.endswith(".parquet"):
                about = require("pyarrow.parquet", "parquet").ParquetFile(file).metadata
                counts = [about.row_group(group).num_rows for group in range(about.num_row_groups)]
            else:
                with _arrow(file) as reader:
                    counts = [batch.num_rows for batch in reader]
            return [Segment(path, group, rows) for group, rows in enumerate(counts) if rows]

    def _batches(self, path: str, segments: list[Segment], columns: list[str], size: int) -> Iterator[Any]:
        groups = [segment.group for segment in segments]
        if path.endswith(".npy"):
            yield from self._rows(path, segments, columns, size)
            return
        with files.opened(path) as file:
            if path.endswith(".parquet"):
                # Its own reader, not that of pyarrow.dataset, which holds whole row groups in memory.
                reader = require("pyarrow.parquet", "parquet").ParquetFile(
                    file, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True
                )
                yield from reader.iter_batches(size, row_groups=groups, columns=columns, use_threads=False)
                return
            with _arrow(file) as reader:
                wanted = set(groups)
                for group, batch in enumerate(reader):
                    if group in wanted:
                        some = batch.select(columns)
                        yield from (some.slice(at, size) for at in range(0, some.num_rows, size))
                    if group >= groups[-1]:
                        return

    def _rows(self, path: str, segments: list[Segment], columns: list[str], size: int) -> Iterator[Any]:
        """Rows of a .npy file, with the labels of another."""
        given = self._given(path)
        with ExitStack() as open_:
            x = open_.enter_context(arrays.opened(path))
            y = None if given is None else open_.enter_context(arrays.opened(given))
            if len(x.shape) != 2 or not all(x.shape):
                raise AttarError(f"{path} has shape {x.shape}: give one row of numbers per example.")
            if y is not None and (y.shape != x.shape[:1] or y.dtype.kind not in "iu"):
                raise AttarError(f"{given} has shape {y.shape}: give one whole number for each row of {path}.")
            for segment in segments:
                start, stop = segment.group * PIECE, segment.group * PIECE + segment.rows
                for at in range(start, stop, size):
                    yield _batch(x, y, at, min(at + size, stop), columns)


@dataclass(frozen=True)
class Hub:
    """A ``Dataset`` of Hugging Face, or an ``IterableDataset``, which is one segment: it has no beginning but its own.

    Args:
        data: The data set.
        rows: Its number of rows.
    """

    data: Any
    rows: int

    @staticmethod
    def of(data: Any) -> Hub:
        """The data set with its rows counted; those of a stream by reading it."""
        plain = data.with_format("arrow")
        if hasattr(plain, "__len__"):
            return Hub(plain, len(plain))
        return Hub(plain, sum(len(table) for table in plain.iter(batch_size=PIECE)))

    def schema(self, columns: Sequence[str]) -> Any:
        return next(iter(self.data.iter(batch_size=1))).schema

    def segments(self) -> list[Segment]:
        size = PIECE if hasattr(self.data, "__len__") else max(1, self.rows)
        return [Segment("", start // size, min(size, self.rows - start)) for start in range(0, self.rows, size)]

    def batches(self, segments: Sequence[Segment], columns: Sequence[str], size: int) -> Iterator[Any]:
        if hasattr(self.data, "__len__"):
            tables = (self.data[s.group * PIECE : s.group * PIECE + s.rows] for s in segments)
        else:
            tables = self.data.iter(batch_size=size)
        for table in tables:
            yield from table.select(list(columns)).to_batches(max_chunksize=size)

    def stamp(self, segments: Sequence[Segment]) -> str:
        return str(getattr(self.data, "_fingerprint", self.rows))


@contextmanager
def whole(path: str) -> Iterator[None]:
    """Errors of damaged files, as one sentence."""
    arrow = require("pyarrow", "parquet")
    try:
        yield
    except AttarError:
        raise
    except (arrow.ArrowException, OSError, EOFError, KeyError) as error:
        require_read(path, error)
        reason = " ".join(str(error).split())[:200]
        raise AttarError(
            f"{path} is not a complete table ({reason}): write it again, or leave that file out."
        ) from error


@contextmanager
def _arrow(file: Any) -> Iterator[Any]:
    """The record batches of a stream of Arrow, as Hugging Face writes it, or of a file."""
    arrow = require("pyarrow", "parquet")
    source = arrow.memory_map(file) if isinstance(file, str) else arrow.PythonFile(file)
    with source:
        begins = source.read(6)
        source.seek(0)
        if begins != b"ARROW1":
            with arrow.ipc.open_stream(source) as reader:
                yield reader
            return
        with arrow.ipc.open_file(source) as reader:
            yield _InFile(reader)


class _InFile:
    """The record batches of an Arrow file, one after the other as in a stream."""

    def __init__(self, reader: Any) -> None:
        self.reader, self.schema = reader, reader.schema

    def __iter__(self) -> Iterator[Any]:
        return (self.reader.get_batch(group) for group in range(self.reader.num_record_batches))


def _batch(x: Any, y: Any, start: int, stop: int, columns: Sequence[str]) -> Any:
    """Rows of arrays as one batch of Arrow."""
    arrow = require("pyarrow", "parquet")
    made = {}
    if ROWS in columns:
        some = np.ascontiguousarray(x.rows(start, stop), dtype=np.float32)
        made[ROWS] = arrow.FixedSizeListArray.from_arrays(arrow.array(some.ravel()), some.shape[1])
    if LABEL in columns:
        made[LABEL] = arrow.array(np.asarray(y.rows(start, stop)))
    return arrow.RecordBatch.from_pydict({name: made[name] for name in columns})
