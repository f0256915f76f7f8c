"""A table on disk whose columns are features, labels and keys; rows are read in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attar.core.errors import AttarError, require, unknown
from attar.data.formats import hf
from attar.data.parts import files, values
from attar.data.parts.tables import LABEL, ROWS, Files, Hub, Segment, Table

BATCH = 1024  #: rows of Arrow that are in memory at once


class Batch(NamedTuple):
    """Some rows; what was not asked for is None."""

    numbers: NDArray[np.int64]  #: of the rows, from 0 in the first file
    x: NDArray[Any] | list[str] | None = None  #: float32 vectors, uint8 images or texts
    labels: Any = None  #: an Arrow array of int64 or large_string
    keys: Any = None


@dataclass(frozen=True)
class InParts:
    """Rows of files that need not fit into memory.

    Args:
        source: A path, a folder, a pattern such as ``folder/*.parquet`` or any URL that fsspec knows, of Parquet, Arrow
            or .npy files; a folder of ``save_to_disk``; or a ``Dataset`` or ``IterableDataset`` of Hugging Face.
        features: The column with the examples: lists of numbers, image bytes or texts; or several columns of numbers.
            Not needed for .npy files, whose rows are the examples.
        label: The column with the classes, whole numbers or texts; for .npy files another .npy file, or as many files
            as there are of examples.
        id: The column with the key of every row, whole numbers or texts; by default rows are numbered.
    """

    source: Any
    features: str | Sequence[str] | None = None
    label: str | None = None
    id: str | None = None

    @cached_property
    def table(self) -> Table:
        """The table behind the source."""
        if hf.is_loaded(self.source):
            return Hub.of(self.source)
        if not isinstance(self.source, str | Path):
            raise AttarError(f"{type(self.source).__name__} cannot be read in parts: give a path, a pattern or a URL.")
        paths = files.find(self.source)
        labels = files.find(self.label) if self.of_arrays(paths) and self.label else []
        if labels and len(labels) != len(paths):
            raise AttarError(
                f"There are {len(paths)} files of examples and {len(labels)} of labels: give as many of both."
            )
        return Files(tuple(paths), tuple(labels))

    @staticmethod
    def of_arrays(paths: Sequence[str]) -> bool:
        """Whether these are .npy files, which have no columns."""
        return paths[0].endswith(".npy")

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema, with every column that is asked for."""
        schema = self.table.schema(self.names)
        for name in self.names:
            if name not in schema.names:
                raise unknown(f"column of {self.where}", name, schema.names)
        return schema

    @cached_property
    def kind(self) -> values.Kind:
        """What the examples are."""
        return values.kind_of(self.schema, self.example)

    @property
    def where(self) -> str:
        """The source, for errors."""
        return str(self.source) if isinstance(self.source, str | Path) else "the data set"

    @property
    def example(self) -> list[str]:
        """The columns of the examples."""
        if self._arrays:
            if self.features is not None or self.id is not None:
                raise AttarError(f"{self.where} has no columns: leave out the features and the id.")
            return [ROWS]
        if not self.features:
            raise AttarError(f"Give the column of {self.where} with the features, such as --features emb.")
        return [self.features] if isinstance(self.features, str) else list(self.features)

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        told = [self.label_column, self.id]
        return list(dict.fromkeys([*self.example, *(name for name in told if name is not None)]))

    @property
    def label_column(self) -> str | None:
        """The column of labels in the table."""
        return LABEL if self.label and self._arrays else self.label

    @property
    def _arrays(self) -> bool:
        return isinstance(self.table, Files) and self.of_arrays(self.table.paths)

    def read(
        self,
        segments: Sequence[Segment],
        start: int,
        *,
        x: bool = True,
        keys: bool = True,
        only: NDArray[np.int64] | None = None,
    ) -> Iterator[Batch]:
        """All rows of these segments, a few at a time.

        Args:
            segments: Consecutive segments of the table.
            start: Number of their first row.
            x: Whether examples are read.
            keys: Whether keys are read.
            only: Row numbers in increasing order; others are not decoded.
        """
        label, key = self.label_column, self.id if keys else None
        wanted = list(dict.fromkeys([*(self.example if x else []), *filter(None, (label, key))]))
        if not wanted:  # the number of rows is all that is asked for
            every = np.arange(start, start + sum(segment.rows for segment in segments))
            yield Batch(every if only is None else only)
            return
        for batch in self.table.batches(segments, wanted, BATCH):
            if only is not None and start > only[-1]:
                return
            numbers = np.arange(start, start + batch.num_rows)
            start += batch.num_rows
            if only is not None:
                places = only[np.searchsorted(only, numbers[0]) : np.searchsorted(only, start)] - numbers[0]
                batch, numbers = batch.take(places), numbers[places]
            if len(numbers):
                yield Batch(
                    numbers,
                    self._examples(batch, numbers) if x else None,
                    values.plain(batch.column(label), label, self.where, numbers) if label else None,
                    values.plain(batch.column(key), key, self.where, numbers) if key else None,
                )

    def _examples(self, batch: Any, numbers: NDArray[np.int64]) -> NDArray[Any] | list[str]:
        found = [batch.column(name) for name in self.example]
        if self.kind == "vectors":
            return values.vectors(found, self.example, self.where, numbers)
        if self.kind == "images":
            return values.pixels(found[0], self.example[0], self.where, numbers)
        return values.texts(found[0], self.example[0], self.where, numbers)


def joined(parts: Sequence[NDArray[Any] | list[str]]) -> NDArray[Any] | list[str]:
    """Examples of several batches, one after the other."""
    if isinstance(parts[0], list):
        return [text for part in parts for text in part]
    widths = {part.shape[1:] for part in parts}  # type: ignore[union-attr]
    if len(widths) > 1:
        raise AttarError(
            f"Rows have examples of shape {' and '.join(map(str, sorted(widths)))}: give all the same shape."
        )
    return np.concatenate(parts)


def chained(arrays: Sequence[Any]) -> Any:
    """Arrow arrays of one type, one after the other."""
    return require("pyarrow", "parquet").concat_arrays(arrays)
