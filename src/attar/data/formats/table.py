"""Tables: columns of numbers, words, dates and texts, one of which is the class."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from attar.core import budget
from attar.core.errors import AttarError
from attar.data.columns import MISSING, Header
from attar.data.formats import lines
from attar.data.raw import RawSplit, pack

TARGETS = ("label", "target", "class", "y")
CELL = 100  #: bytes of the objects for one word
LONGEST = 1 << 24  #: characters of one line
ROWS = 4096  #: of a CSV file, parsed at once
DELIMITERS = ",;\t"
CODE = re.compile(r"[+-]?0\d+")  #: digits that are no number, such as 01234

Row = tuple[int, list[str]]  #: the line where it ends, and its cells


def read_csv(path: Path, target: str | None) -> RawSplit:
    """A table whose first row names the columns, separated by commas, semicolons or tabs.

    The file is read twice, in parts: first to see which columns are numbers, then for the values. So no more than the
    numbers and the different words of a column are ever in memory.
    """
    with _rows(path) as (names, rows):
        label = names.index(pick(names, target, str(path)))
        numeric = [place != label for place in range(len(names))]
        count = 0
        while part := list(islice(rows, ROWS)):
            count += len(part)
            cells = list(zip(*(row for _, row in part), strict=True))
            numeric = [known and _are_numbers(column) for known, column in zip(numeric, cells, strict=True)]
    budget.claim(8 * count * len(names), str(path))
    x = np.empty((count, len(names)))
    words: list[dict[str, int]] = [{} for _ in names]
    with _rows(path) as (_, rows):
        done = 0
        while done < count and (part := list(islice(rows, ROWS))):
            for place, column in enumerate(zip(*(row for _, row in part), strict=True)):
                into = x[done : done + len(part), place]
                into[:] = _numbers(column) if numeric[place] else _codes(column, words[place], path)
                if np.isinf(into).any():
                    line = part[int(np.isinf(into).argmax())][0]
                    raise infinite(names[place], f"line {line} of {path}")
            done += len(part)
    headers = [
        Header(name, None if known else tuple(found), typed=False)
        for name, known, found in zip(names, numeric, words, strict=True)
    ]
    classes = np.array(headers[label].words or (), dtype=object)[x[:done, label].astype(np.int64)]
    if len(names) == 1:
        raise _nothing(str(path))
    others = [header for header in headers if header.name != names[label]]
    return labelled(np.delete(x[:done], label, axis=1), others, classes, names[label], str(path))


def read_tsv(path: Path, target: str | None) -> RawSplit:
    """A table separated by tabs, or one labelled sentence on every line where the first names no columns."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = [cell.strip().lower() for cell in file.readline(LONGEST).split("\t")]
    if target is None and len(first) < 3 and not set(first) & set(TARGETS):
        return lines.read(path)
    return read_csv(path, target)


@contextmanager
def _rows(path: Path) -> Iterator[tuple[list[str], Iterator[Row]]]:
    """The names of the columns and the rows of a CSV file; blank lines are left out."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            start = file.readline(LONGEST)
            file.seek(0)
            reader = csv.reader(_lines(file, path), strict=True, delimiter=max(DELIMITERS, key=start.count))
            names = [name.strip() for name in next(reader, [])]
            yield names, _full(reader, len(names), path)
    except (csv.Error, UnicodeDecodeError) as error:
        raise AttarError(f"{path} is not a CSV file in UTF-8 ({error}): save it in UTF-8.") from error


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a file, none of which may be longer than memory."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise AttarError(f"{path} has a line of more than {LONGEST:,} characters: write it again as a CSV file.")
        yield line


def _full(reader: Any, count: int, path: Path) -> Iterator[Row]:
    for row in filter(None, reader):
        if len(row) != count:
            raise AttarError(
                f"Line {reader.line_num} of {path} has {len(row)} values where the first row names {count} "
                "columns: repair that line."
            )
        yield reader.line_num, row


def _are_numbers(cells: Sequence[str]) -> bool:
    """Whether every cell is a number or missing."""
    try:
        np.array(cells, dtype=np.float64)
    except ValueError:
        if not all(cell.strip().lower() in MISSING or is_number(cell) for cell in cells):
            return False
    return not any(CODE.fullmatch(cell.strip()) for cell in cells if cell[:1] in "0+- ")


def _numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array([float(cell) if is_number(cell) else np.nan for cell in cells])


def _codes(cells: Sequence[str], words: dict[str, int], path: Path) -> list[int]:
    """The place of every cell among the words of its column, which grow."""
    found = []
    for cell in map(str.strip, cells):
        if cell not in words:
            budget.claim(CELL + 2 * len(cell), str(path))
            words[cell] = len(words)
        found.append(words[cell])
    return found


def read_frame(frame: Any, target: str | None, where: str = "the DataFrame") -> RawSplit:
    """A pandas DataFrame: feature columns, and one label column."""
    label = pick([str(name) for name in frame.columns], target, where)
    return from_arrays({str(name): frame[name] for name in frame.columns}, label, where)


def from_arrays(columns: Mapping[str, Any], label: str, where: str) -> RawSplit:
    """A table of arrays or pandas columns, one of which holds the labels."""
    given = columns[label]
    if isinstance(given, tuple):  # ordered words; the last is for missing ones
        given = np.array([*given[1], None], dtype=object)[np.nan_to_num(given[0], nan=-1).astype(np.int64)]
    x, headers = examples({name: values for name, values in columns.items() if name != label}, where)
    return labelled(x, headers, np.asarray(given), label, where)


def pick(names: Sequence[str], target: str | None, where: str) -> str:
    """The label column: ``target``, or the only column with one of the default names."""
    require_distinct(names, where)
    if target is not None:
        if target not in names:
            raise AttarError(f"{where} has no column {target!r}: give one of {', '.join(names) or 'none'} as target.")
        return target
    likely = [name for name in names if name.lower() in TARGETS]
    if len(likely) != 1:
        fault = "several columns that could be the label" if likely else "no column called label, target, class or y"
        raise AttarError(f"{where} has {fault}: give one of {', '.join(names) or 'none'} as target.")
    return likely[0]


def require_distinct(names: Sequence[str], where: str) -> None:
    """Raise if two columns have one name."""
    if len(set(names)) != len(names):
        raise AttarError(f"{where} names a column twice among {', '.join(names)}: rename one.")


def examples(columns: Mapping[str, Any], where: str) -> tuple[NDArray[np.float64], list[Header]]:
    """Columns of any type side by side, and what they are."""
    if not columns:
        raise _nothing(where)
    cells = [_cells(values, name, where) for name, values in columns.items()]
    budget.claim(8 * len(cells) * len(cells[0][0]), where)
    return np.stack([values for values, _ in cells], axis=1), [header for _, header in cells]


def _cells(column: Any, name: str, where: str) -> tuple[NDArray[np.float64], Header]:
    """One column as numbers or as places in its words."""
    if isinstance(column, tuple):  # places in ordered words
        return column[0], Header(name, column[1], "ordinal")
    categories = getattr(getattr(column, "dtype", None), "categories", None)  # of pandas
    if categories is not None:
        kind = "ordinal" if column.dtype.ordered else None
        codes = column.cat.codes.to_numpy().astype(np.float64)
        return np.where(codes < 0, np.nan, codes), Header(name, tuple(map(str, categories)), kind)  # type: ignore[arg-type]
    values = np.asarray(column)
    if values.ndim != 1 or values.dtype.kind not in "buifMUO":
        raise AttarError(f"Column {name!r} of {where} is of type {values.dtype}: convert or drop that column.")
    if values.dtype.kind == "M":
        days = (values - np.datetime64("1970-01-01", "us")) / np.timedelta64(1, "D")
        return days.astype(np.float64), Header(name, kind="date")
    if values.dtype.kind == "b":
        return values.astype(np.float64), Header(name, ("False", "True"), "boolean")
    return (
        _objects(values.tolist(), name, where)
        if values.dtype.kind in "UO"
        else (values.astype(np.float64), Header(name))
    )


def _objects(values: list[Any], name: str, where: str) -> tuple[NDArray[np.float64], Header]:
    """Python values: booleans, numbers or anything that is written as a word; None and NaN are missing."""
    known = [value for value in values if not is_null(value)]
    if all(isinstance(value, bool | np.bool_) for value in known) and known:
        return np.array([np.nan if is_null(value) else float(value) for value in values]), Header(
            name, ("False", "True"), "boolean"
        )
    if all(isinstance(value, int | float | np.number) for value in known):
        return np.array([np.nan if is_null(value) else float(value) for value in values]), Header(name)
    if not all(isinstance(value, str | int | float | np.number) or hasattr(value, "isoformat") for value in known):
        odd = next(value for value in known if not isinstance(value, str))
        raise AttarError(
            f"Column {name!r} of {where} holds values of type {type(odd).__name__}: convert or drop that column."
        )
    words: dict[str, int] = {}
    places = [np.nan if is_null(value) else float(words.setdefault(str(value), len(words))) for value in values]
    return np.array(places), Header(name, tuple(words))


def is_null(value: object) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA."""
    missing = isinstance(value, float | np.floating) and bool(np.isnan(value))
    return missing or value is None or type(value).__name__ in ("NAType", "NaTType")


def labelled(
    x: NDArray[Any], headers: Sequence[Header] | None, labels: NDArray[Any], column: str, where: str
) -> RawSplit:
    """Features with class labels from a column: whole numbers in order of value, anything else as sorted text."""
    if labels.ndim != 1 or (labels.dtype.kind == "O" and any(np.ndim(label) for label in labels)):
        raise AttarError(f"Column {column!r} of {where} holds lists: give a column of classes as target.")
    if labels.dtype.kind == "O" and any(is_null(label) for label in labels):
        raise _missing(column, where)
    try:
        numbers = labels.astype(np.float64)
    except (ValueError, TypeError):
        texts = labels.astype(str)
        if (texts == "").any():
            raise _missing(column, where) from None
        return pack(x, texts, where, columns=headers)
    if np.isnan(numbers).any():
        raise _missing(column, where)
    if not (np.isfinite(numbers) & (numbers == np.round(numbers))).all():
        raise AttarError(f"Column {column!r} of {where} holds fractions: give a column of classes as target.")
    values, index = np.unique(numbers.astype(np.int64), return_inverse=True)
    return pack(x, index, where, [str(value) for value in values], columns=headers)


def is_number(text: str) -> bool:
    """Whether a cell is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def infinite(column: str, where: str) -> AttarError:
    """The error for a number that is not finite."""
    return AttarError(f"Column {column!r} has an infinite value in {where}: correct it or drop that row.")


def _nothing(where: str) -> AttarError:
    return AttarError(f"{where} has no feature column: add at least one column beside the label.")


def _missing(column: str, where: str) -> AttarError:
    return AttarError(f"Column {column!r} has a missing label in {where}: fill it in or drop that row.")
