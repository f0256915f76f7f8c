"""What a reader returns, and the one check that every source goes through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attar.core.errors import AttarError

MOST_CLASSES = 1 << 16  #: a larger label is a mistake, not a class


class Raw(NamedTuple):
    """Examples ``(n, c, h, w)`` or ``(n, d)`` in uint8 (pixels 0..255) or float32, and int64 labels ``(n,)``."""

    x: NDArray[Any]
    y: NDArray[np.int64]


class RawSplit(NamedTuple):
    """What a source brings: a training set, a test set if it has one, and the names of the classes in label order."""

    train: Raw
    test: Raw | None
    classes: tuple[str, ...]


def pack(x: NDArray[Any], y: NDArray[Any], where: str, classes: Sequence[str] | None = None) -> RawSplit:
    """A training set from arrays as users have them.

    Gray images ``(n, h, w)`` and channels-last images ``(n, h, w, c)`` become ``(n, c, h, w)``; numbers other than
    uint8 become float32. String labels become the sorted class names; whole numbers are class indices, named by
    ``classes`` or else by themselves.
    """
    labels, names = _labels(y, where) if classes is None else (_whole(y, where), tuple(classes))
    return RawSplit(Raw(_examples(x, where), labels), None, names)


def join(train: RawSplit, test: RawSplit, where: str) -> RawSplit:
    """One source from two that were read apart; the classes of the second are found by name in the first."""
    if train.classes == test.classes:
        return train._replace(test=test.train)
    _check_part(test.train, f"The test set of {where}", test.classes)
    place = {name: index for index, name in enumerate(train.classes)}
    for label in np.unique(test.train.y):
        if (name := test.classes[label]) not in place:
            raise AttarError(f"The test set of {where} has class {name!r}, which train lacks: label both alike.")
    lookup = np.array([place.get(name, -1) for name in test.classes], dtype=np.int64)
    return train._replace(test=Raw(test.train.x, lookup[test.train.y]))


def check(split: RawSplit, where: str, per_class: int = 1) -> RawSplit:
    """Return ``split`` if it can be trained on, with at least ``per_class`` training examples of every class."""
    train, test, classes = split
    _check_part(train, f"The training set of {where}", classes)
    if test is not None:
        _check_part(test, f"The test set of {where}", classes)
        if test.x.shape[1:] != train.x.shape[1:] or test.x.dtype != train.x.dtype:
            raise AttarError(
                f"Training examples of {where} are {_form(train.x)} but test examples are {_form(test.x)}: "
                "give both the same shape and type."
            )
    if len(classes) < 2:
        raise AttarError(f"{where} has only one class, {''.join(classes)!r}: bring examples of at least two.")
    counts = np.bincount(train.y, minlength=len(classes))
    if counts.min() < per_class:
        raise AttarError(
            f"Class {classes[counts.argmin()]!r} of {where} has {counts.min()} training examples where {per_class} are "
            "needed to have it in every set: bring more of it, or leave it out and number labels from 0 without gaps."
        )
    return split


def _check_part(raw: Raw, what: str, classes: tuple[str, ...]) -> None:
    x, y = raw
    if x.dtype not in (np.uint8, np.float32) or y.dtype != np.int64:
        raise AttarError(f"{what} holds {x.dtype} examples and {y.dtype} labels: give numbers and whole-number labels.")
    if x.ndim not in (2, 4) or y.ndim != 1:
        raise AttarError(
            f"{what} has examples of shape {x.shape} and labels of shape {y.shape}: "
            "give (n, channels, height, width) or (n, features), and labels (n,)."
        )
    if len(x) != len(y):
        raise AttarError(f"{what} has {len(x)} examples but {len(y)} labels: give one label for each example.")
    if x.size == 0:
        raise AttarError(f"{what} is empty, of shape {x.shape}: bring at least one example with one value.")
    if x.dtype == np.float32 and not np.isfinite(x).all():
        bad = int(np.argwhere(~np.isfinite(x.reshape(len(x), -1)).all(1))[0, 0])
        raise AttarError(f"{what} holds NaN or Inf, first in example {bad}: replace or drop such examples.")
    outside = (y < 0) | (y >= len(classes))
    if outside.any():
        raise AttarError(
            f"{what} has label {y[outside][0]} at example {int(outside.argmax())}, outside 0..{len(classes) - 1}: "
            "number the classes from 0 without gaps."
        )


def _examples(x: NDArray[Any], where: str) -> NDArray[Any]:
    if x.dtype.kind not in "buif":
        raise AttarError(f"{where} has examples of type {x.dtype}: give numbers.")
    if x.dtype != np.uint8:
        with np.errstate(over="ignore"):  # what overflows becomes Inf, which the check reports
            x = x.astype(np.float32, copy=False)
    if x.ndim == 3:
        return x[:, None]
    channels_last = x.ndim == 4 and x.shape[3] in (1, 3) and min(x.shape[1:3]) > x.shape[3]
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if channels_last else x


def _labels(y: NDArray[Any], where: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if y.dtype.kind in "US":
        names, index = np.unique(_column(y).astype(str), return_inverse=True)
        return index.astype(np.int64), tuple(names.tolist())
    whole = _whole(y, where)
    if whole.size and (whole.min() < 0 or whole.max() >= MOST_CLASSES):
        wrong = whole.min() if whole.min() < 0 else whole.max()
        raise AttarError(f"{where} has label {wrong}: number the classes from 0 without gaps, or name them by strings.")
    return whole, tuple(str(label) for label in range(int(whole.max(initial=-1)) + 1))


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
    return f"{x.dtype} {x.shape[1:]}"
