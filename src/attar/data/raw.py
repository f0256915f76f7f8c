"""What readers return, and the checks that every source passes."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from tokenize import TokenError
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attar.core import budget
from attar.core.errors import AttarError
from attar.data.columns import Header

CHANNELS, FLAT = 4, 8  #: sides of arrays that are series: at most so many channels, so many times as long
MOST_CLASSES = 1 << 16  #: more distinct labels than this are an error

#: What Python raises for a damaged archive, zip or tar, while it is read.
DAMAGED_ARCHIVE = (
    *(OSError, EOFError, KeyError, ValueError, RuntimeError, zlib.error, lzma.LZMAError),  # ValueError: decoding
    *(tarfile.TarError, zipfile.BadZipFile),
)

#: What numpy raises for a damaged file: it parses headers as Python literals and archives with ``zipfile``.
DAMAGED_ARRAY = (
    *(ValueError, TypeError, SyntaxError, TokenError, KeyError, AttributeError),
    *(OSError, EOFError, OverflowError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


class Raw(NamedTuple):
    """Examples as a reader returns them.

    Images ``(n, c, h, w)`` or features ``(n, d)`` in uint8 (pixels 0..255) or float32, or texts ``(n,)``: an array of
    Python strings, as one of fixed width would give every text the size of the longest. The rows of a table
    ``(n, columns)`` are float64, with NaN for missing values, and ``columns`` says what they mean.
    """

    x: NDArray[Any]
    y: NDArray[np.int64]  #: labels ``(n,)``
    rows: NDArray[np.int64]  #: the row number of every example in the user's source
    keys: Sequence[str] | None = None  #: the user's names of all rows, such as file names
    columns: tuple[Header, ...] | None = None  #: of a table

    def at(self, mask: NDArray[np.bool_]) -> Raw:
        """The examples where the mask is true."""
        return self._replace(x=self.x[mask], y=self.y[mask], rows=self.rows[mask])


class RawSplit(NamedTuple):
    """What a source holds: a training set, names, and a test and validation set if it has them."""

    train: Raw
    test: Raw | None
    classes: tuple[str, ...]  #: in the order of the labels
    val: Raw | None = None

    def parts(self) -> dict[str, Raw]:
        """The sets that it has, by name."""
        found = {"train": self.train, "test": self.test, "val": self.val}
        return {name: part for name, part in found.items() if part is not None}


def pack(
    x: NDArray[Any],
    y: NDArray[Any],
    where: str,
    classes: Sequence[str] | None = None,
    *,
    keys: Sequence[str] | None = None,
    columns: Sequence[Header] | None = None,
) -> RawSplit:
    """A training set from the user's arrays.

    Gray images ``(n, h, w)`` and channels-last images ``(n, h, w, c)`` become ``(n, c, h, w)``; numbers other than
    uint8 become float32; strings are texts; the rows of a table stay as they are. Labels are strings or whole numbers:
    the sorted distinct values become the classes. If ``classes`` is given, labels are indices of these names.
    """
    if not x.ndim or not y.ndim:
        raise AttarError(f"{where} holds a single value where examples or labels are due: give one row per example.")
    labels, names = _labels(y, where) if classes is None else (_whole(y, where), tuple(classes))
    if columns is None:
        return RawSplit(Raw(_examples(x, where), labels, np.arange(len(x)), keys), None, names)
    return RawSplit(Raw(x, labels, np.arange(len(x)), keys, tuple(columns)), None, names)


def join(train: RawSplit, test: RawSplit, where: str, part: str = "test") -> RawSplit:
    """Add a test or validation set to a training set; classes are matched by name."""
    held = test.train
    if train.classes != test.classes:
        _check_part(held, f"The {part} set of {where}", test.classes)
        place = {name: index for index, name in enumerate(train.classes)}
        for label in np.unique(held.y):
            if (name := test.classes[label]) not in place:
                raise AttarError(
                    f"The {part} set of {where} has class {name!r}, which train lacks: use the same labels in both."
                )
        lookup = np.array([place.get(name, -1) for name in test.classes], dtype=np.int64)
        held = held._replace(y=lookup[held.y])
    return train._replace(test=held) if part == "test" else train._replace(val=held)


def check(split: RawSplit, where: str, per_class: int = 1) -> RawSplit:
    """Return ``split`` if it is valid and has at least ``per_class`` training examples per class."""
    train, classes = split.train, split.classes
    for name in classes:
        budget.short(name, f"The name of a class of {where}")
    for header in train.columns or ():
        budget.short(header.name, f"The name of a column of {where}")
    _check_part(train, f"The training set of {where}", classes)
    for part, held in (("test", split.test), ("validation", split.val)):
        if held is not None:
            _check_part(held, f"The {part} set of {where}", classes)
            table = held.columns is not None and train.columns is not None  # whose columns are matched by name
            if not table and (held.x.shape[1:] != train.x.shape[1:] or held.x.dtype.kind != train.x.dtype.kind):
                raise AttarError(
                    f"Training examples of {where} are {_form(train.x)} but {part} examples are {_form(held.x)}: "
                    "give both the same shape and type."
                )
    if len(classes) < 2:
        raise AttarError(f"{where} has only one class, {''.join(classes)!r}: give examples of at least two.")
    counts = np.bincount(train.y, minlength=len(classes))
    if counts.min() < per_class:
        raise AttarError(
            f"Class {classes[counts.argmin()]!r} of {where} has {counts.min()} training examples, but {per_class} are "
            "needed so that every set has one: add examples, or leave the class out."
        )
    return split


def _check_part(raw: Raw, what: str, classes: tuple[str, ...]) -> None:
    x, y = raw.x, raw.y
    text, table = is_text(x), raw.columns is not None
    if (x.dtype not in (np.uint8, np.float32) and not text and not table) or y.dtype != np.int64:
        raise AttarError(f"{what} holds {x.dtype} examples and {y.dtype} labels: give numbers and whole-number labels.")
    if x.ndim not in ((1,) if text else (2, 4)) or y.ndim != 1:
        raise AttarError(
            f"{what} has examples of shape {x.shape} and labels of shape {y.shape}: "
            "give (n, channels, height, width) or (n, features), and labels (n,)."
        )
    if len(x) != len(y):
        raise AttarError(f"{what} has {len(x)} examples but {len(y)} labels: give one label per example.")
    if x.size == 0:
        raise AttarError(f"{what} is empty (shape {x.shape}): give at least one example with one value.")
    if text and not all(map(str.strip, x)):
        bad = next(index for index, words in enumerate(x) if not words.strip())
        name = f"example {bad}" if raw.keys is None else raw.keys[raw.rows[bad]]
        raise AttarError(f"{what} has an empty text, {name}: fill it in or leave it out.")
    if table and np.isinf(x).any():
        row, place = np.argwhere(np.isinf(x))[0].tolist()
        name = (raw.columns or ())[place].name
        raise AttarError(f"{what} has an infinite value in row {row} of column {name!r}: correct it or drop that row.")
    if x.dtype == np.float32 and not np.isfinite(x).all():
        bad = int(np.argwhere(~np.isfinite(x.reshape(len(x), -1)).all(1))[0, 0])
        raise AttarError(f"{what} holds NaN or Inf, first in example {bad}: replace or drop such examples.")
    outside = (y < 0) | (y >= len(classes))
    if outside.any():
        raise AttarError(
            f"{what} has label {y[outside][0]} at example {int(outside.argmax())}, outside 0..{len(classes) - 1}: "
            "number the classes from 0 without gaps."
        )


def is_text(x: NDArray[Any]) -> bool:
    """Whether the examples are texts."""
    return x.dtype.kind == "O"


def _examples(x: NDArray[Any], where: str) -> NDArray[Any]:
    if x.ndim == 1 and (x.dtype.kind == "U" or (x.dtype.kind == "O" and all(isinstance(text, str) for text in x))):
        return x.astype(object)
    if x.dtype.kind not in "buif":
        raise AttarError(f"{where} has examples of type {x.dtype}: give numbers, or one text per example.")
    if x.dtype != np.uint8:
        with np.errstate(over="ignore"):  # an overflow becomes Inf, which the check reports
            x = x.astype(np.float32, copy=False)
    if x.ndim == 3:
        _refuse_series(x, where)
        return x[:, None]
    channels_last = x.ndim == 4 and x.shape[3] in (1, 3) and min(x.shape[1:3]) > x.shape[3]
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if channels_last else x


def _refuse_series(x: NDArray[Any], where: str) -> None:
    """Raise where ``(n, height, width)`` are hardly gray images: one side is tiny, the other many times as long."""
    short, long = sorted(x.shape[1:])
    if 0 < short <= CHANNELS and long >= FLAT * short:
        flat, image = f"({len(x)}, {short * long})", f"({len(x)}, 1, {x.shape[1]}, {x.shape[2]})"
        raise AttarError(
            f"{where} has examples of shape {x.shape[1:]}, which look like series of length {long}, not gray images: "
            f"reshape them to {flat} for feature vectors, or to {image} if they are images."
        )


def _labels(y: NDArray[Any], where: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if _column(y).ndim != 1:
        raise AttarError(f"{where} has labels of shape {y.shape}: give one label per example.")
    if y.dtype.kind in "US" or (y.dtype.kind == "O" and all(isinstance(label, str) for label in y.flat)):
        names, index = np.unique(_column(y).astype(str), return_inverse=True)
        return index.astype(np.int64), tuple(names.tolist())
    values, index = np.unique(_whole(y, where), return_inverse=True)
    if len(values) > MOST_CLASSES:
        raise AttarError(f"{where} has {len(values)} different labels: give class labels, not one value per example.")
    return index.reshape(-1).astype(np.int64), tuple(map(str, values.tolist()))


def _whole(y: NDArray[Any], where: str) -> NDArray[np.int64]:
    y = _column(y)
    if y.dtype.kind not in "buif":
        raise AttarError(f"{where} has labels of type {y.dtype}: give whole numbers or strings.")
    if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.round(y))).all():
        raise AttarError(
            f"{where} has labels that are not whole numbers: give class indices or names, one per example."
        )
    return y.astype(np.int64)


def _column(y: NDArray[Any]) -> NDArray[Any]:
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _form(x: NDArray[Any]) -> str:
    return "texts" if is_text(x) else f"{x.dtype} {x.shape[1:]}"
