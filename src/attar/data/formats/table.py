"""Tables: numeric columns are features, or one column holds texts; another column is the class."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from attar.core import budget
from attar.core.errors import AttarError, require
from attar.data.formats.arrow import verify
from attar.data.raw import RawSplit, pack

TARGETS = ("label", "target", "class", "y")
ROW = 200  #: bytes of the objects for one row of a CSV file
LONGEST = 1 << 24  #: characters of one of its lines
TEXTS = ("text", "sentence")  #: names of a column of texts


def read_csv(path: Path, target: str | None) -> RawSplit:
    """A comma-separated table whose first row names the columns; rows are parsed one at a time.

    A column called ``text`` or ``sentence`` holds the examples, unless its first value is a number.
    """
    rows: list[Any] = []
    labels: list[str] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(_lines(file, path), strict=True)
            names = [name.strip() for name in next(lines, [])]
            column = names.index(pick(names, target, str(path)))
            features = names[:column] + names[column + 1 :]
            text = _text_among(features)
            for row in filter(None, lines):
                if len(row) != len(names):
                    raise AttarError(
                        f"Line {lines.line_num} of {path} has {len(row)} values where the first row names {len(names)} "
                        "columns: repair that line."
                    )
                budget.claim(ROW + 8 * len(row), str(path))
                labels.append(row.pop(column).strip())
                if text is not None and not rows and _is_number(row[text]):
                    text = None  # a column of numbers that is called like one of texts
                where = f"line {lines.line_num} of {path}"
                rows.append(_numbers(row, features, where) if text is None else _text(row[text], path))
    except (csv.Error, UnicodeDecodeError) as error:
        raise AttarError(f"{path} is not a CSV file in UTF-8 ({error}): save it in UTF-8.") from error
    if text is not None:
        _tell_unused(features, text, str(path))
        return from_columns(np.array(rows, dtype=object), np.array(labels, dtype=str), names[column], str(path))
    x = np.stack(rows) if rows else np.empty((0, len(features)), np.float32)
    return from_columns(x, np.array(labels, dtype=str), names[column], str(path), features)


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a file, none of which may be longer than memory."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise AttarError(f"{path} has a line of more than {LONGEST:,} characters: write it again as a CSV file.")
        yield line


def read_parquet(path: Path, target: str | None) -> RawSplit:
    """A Parquet file."""
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    verify([path], path)
    try:
        table = parquet.ParquetFile(path).read()
    except (arrow.ArrowException, OSError) as error:
        raise AttarError(f"{path} is not a complete Parquet file ({error}): write it again.") from error
    label = pick(table.column_names, target, str(path))
    for name in table.column_names:
        if table[name].null_count:
            raise _missing(name, str(path))
    columns = {name: table[name].to_numpy() for name in table.column_names}
    labels = columns.pop(label)
    x, features = examples(columns, str(path))
    return from_columns(x, labels, label, str(path), features)


def read_frame(frame: Any, target: str | None, where: str = "the DataFrame") -> RawSplit:
    """A pandas DataFrame: numeric columns or one of texts, and one label column."""
    label = pick([str(name) for name in frame.columns], target, where)
    columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    labels = columns.pop(label)
    x, features = examples(columns, where)
    return from_columns(x, labels, label, where, features)


def pick(names: Sequence[str], target: str | None, where: str) -> str:
    """The label column: ``target``, or the only column with one of the default names."""
    if len(set(names)) != len(names):
        raise AttarError(f"{where} names a column twice among {', '.join(names)}: rename one.")
    if target is not None:
        if target not in names:
            raise AttarError(f"{where} has no column {target!r}: give one of {', '.join(names) or 'none'} as target.")
        return target
    likely = [name for name in names if name.lower() in TARGETS]
    if len(likely) != 1:
        fault = "several columns that could be the label" if likely else "no column called label, target, class or y"
        raise AttarError(f"{where} has {fault}: give one of {', '.join(names) or 'none'} as target.")
    return likely[0]


def examples(columns: Mapping[str, NDArray[Any]], where: str) -> tuple[NDArray[Any], list[str] | None]:
    """The column of texts if there is one, else all columns as numeric features with their names."""
    names = list(columns)
    text = _text_among(names)
    if text is None or columns[names[text]].dtype.kind not in "UO":
        return stack(columns, where), names
    values = columns[names[text]]
    if not all(isinstance(value, str) for value in values):
        raise _missing(names[text], where)
    _tell_unused(names, text, where)
    return values, None


def _text(words: str, path: Path) -> str:
    budget.claim(2 * len(words), str(path))
    return words


def _text_among(names: Sequence[str]) -> int | None:
    """The place of the column whose name says that it holds texts."""
    return next((place for place, name in enumerate(names) if name.lower() in TEXTS), None)


def _tell_unused(names: Sequence[str], text: int, where: str) -> None:
    others = [name for place, name in enumerate(names) if place != text]
    if others:
        warnings.warn(
            f"The examples of {where} are the texts in column {names[text]!r}: {', '.join(others)} "
            f"{'is' if len(others) == 1 else 'are'} not used.",
            stacklevel=2,
        )


def stack(columns: Mapping[str, NDArray[Any]], where: str) -> NDArray[np.float32]:
    """Numeric columns side by side."""
    for name, values in columns.items():
        if values.dtype.kind not in "buif":
            raise _not_numeric(name, where)
        if not np.isfinite(values).all():
            raise _missing(name, where)
    if not columns:
        raise AttarError(f"{where} has no feature column: add at least one numeric column beside the label.")
    return np.stack([values.astype(np.float32) for values in columns.values()], axis=1)


def from_columns(
    x: NDArray[Any], labels: NDArray[Any], column: str, where: str, columns: Sequence[str] | None = None
) -> RawSplit:
    """Features with class labels from a column: whole numbers in order of value, anything else as sorted text."""
    if labels.ndim != 1 or (labels.dtype.kind == "O" and any(np.ndim(label) for label in labels)):
        raise AttarError(f"Column {column!r} of {where} holds lists: give a column of classes as target.")
    try:
        numbers = labels.astype(np.float64)
    except (ValueError, TypeError):
        texts = labels.astype(str)
        if (texts == "").any():
            raise _missing(column, where) from None
        return pack(x, texts, where, columns=columns)
    if not (np.isfinite(numbers) & (numbers == np.round(numbers))).all():
        raise AttarError(f"Column {column!r} of {where} holds fractions: give a column of classes as target.")
    values, index = np.unique(numbers.astype(np.int64), return_inverse=True)
    return pack(x, index, where, [str(value) for value in values], columns=columns)


def _numbers(row: list[str], names: Sequence[str], where: str) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            numbers = np.array(row, dtype=np.float32)
    except ValueError:
        for name, text in zip(names, row, strict=True):
            if not text.strip():
                raise _missing(name, where) from None
            if not _is_number(text):
                raise _not_numeric(name, where) from None
        raise
    if not np.isfinite(numbers).all():
        raise _missing(names[int(np.isfinite(numbers).argmin())], where)
    return numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _missing(column: str, where: str) -> AttarError:
    return AttarError(f"Column {column!r} has a missing or infinite value in {where}: fill it in or drop that row.")


def _not_numeric(column: str, where: str) -> AttarError:
    return AttarError(
        f"Column {column!r} is not numeric in {where}: encode it as numbers, leave it out, or call it 'text' if "
        "it holds texts."
    )
