"""InParts of Arrow as arrays: vectors, images, texts, labels and keys."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from attar.core.errors import AttarError, require
from attar.data.formats import images

Kind = Literal["vectors", "images", "texts"]


def kind_of(schema: Any, names: Sequence[str]) -> Kind:
    """What these columns hold as examples: a column of lists, or several of numbers; image bytes; or texts."""
    types = require("pyarrow", "parquet").types
    found = [schema.field(name).type for name in names]
    if all(map(_is_number, found)):
        return "vectors"
    if len(found) > 1:
        odd = next(name for name, type in zip(names, found, strict=True) if not _is_number(type))
        raise AttarError(f"Column {odd!r} does not hold numbers: give one column of lists, or several of numbers.")
    type = found[0]
    if _is_list(type) and _is_number(type.value_type):
        return "vectors"
    if types.is_string(type) or types.is_large_string(type):
        return "texts"
    if (
        types.is_binary(type)
        or types.is_large_binary(type)
        or (types.is_struct(type) and type.get_field_index("bytes") >= 0)
    ):
        return "images"
    raise AttarError(
        f"Column {names[0]!r} holds {type}: features are a column of lists of numbers, of image bytes or of texts, or "
        "several columns of numbers."
    )


def vectors(
    columns: Sequence[Any], names: Sequence[str], where: str, numbers: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Numbers ``(n, d)``; ``numbers`` are those of the rows, for errors."""
    for column, name in zip(columns, names, strict=True):
        if column.null_count:
            bad = int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise AttarError(
                f"Row {numbers[bad]} of {where} has no value in column {name!r}: fill it in or drop that row."
            )
    if len(columns) > 1 or not _is_list(columns[0].type):
        x = np.stack([np.asarray(column, dtype=np.float32) for column in columns], axis=1)
    else:
        x = _matrix(columns[0], names[0], where, numbers)
    if not np.isfinite(x).all():
        bad = int(np.flatnonzero(~np.isfinite(x).all(1))[0])
        raise AttarError(
            f"Row {numbers[bad]} of {where} holds NaN or Inf in {', '.join(names)}: repair or drop that row."
        )
    return x


def pixels(column: Any, name: str, where: str, numbers: NDArray[np.int64]) -> NDArray[Any]:
    """Images ``(n, c, h, w)`` in uint8, from PNG or JPEG bytes."""
    types = require("pyarrow", "parquet").types
    held = column.field("bytes") if types.is_struct(column.type) else column
    called = [f"row {number} of {where}" for number in numbers]
    found = []
    for value, at in zip(held, called, strict=True):
        if not value.is_valid:
            raise AttarError(f"The image in column {name!r} of {at} is missing: fill it in or drop that row.")
        found.append(images.decode(BytesIO(value.as_py()), f"Column {name!r} of {at}"))
    return images.stack(found, called)


def texts(column: Any, name: str, where: str, numbers: NDArray[np.int64]) -> list[str]:
    """Texts, none of them empty."""
    found: list[str] = column.to_pylist()
    for place, words in enumerate(found):
        if words is None or not words.strip():
            raise AttarError(
                f"Row {numbers[place]} of {where} has no text in column {name!r}: fill it in or drop that row."
            )
    return found


def plain(column: Any, name: str, where: str, numbers: NDArray[np.int64]) -> Any:
    """A column of labels or keys: whole numbers or texts, none of them missing; dictionaries are written out."""
    arrow = require("pyarrow", "parquet")
    values = column.dictionary_decode() if arrow.types.is_dictionary(column.type) else column
    kinds = arrow.types
    if kinds.is_integer(values.type) or kinds.is_boolean(values.type):
        values = values.cast(arrow.int64())
    elif kinds.is_string(values.type) or kinds.is_large_string(values.type):
        values = values.cast(arrow.large_string())
    else:
        raise AttarError(f"Column {name!r} of {where} holds {column.type}: labels and keys are whole numbers or texts.")
    if values.null_count:
        bad = int(np.flatnonzero(np.asarray(values.is_null()))[0])
        raise AttarError(f"Row {numbers[bad]} of {where} has no value in column {name!r}: fill it in or drop that row.")
    return values


def _matrix(column: Any, name: str, where: str, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
    """A column of lists of one length."""
    arrow, compute = require("pyarrow", "parquet"), require("pyarrow.compute", "parquet")
    if column.type.value_type != arrow.float32():
        column = column.cast(_lists_of(column.type, arrow.float32()))
    flat = column.flatten()
    if flat.null_count:
        lengths = np.asarray(compute.list_value_length(column))
        bad = int(np.searchsorted(lengths.cumsum(), np.flatnonzero(np.asarray(flat.is_null()))[0], side="right"))
        raise AttarError(f"Row {numbers[bad]} of {where} has a missing number in {name!r}: repair or drop that row.")
    lengths = np.asarray(compute.list_value_length(column))
    if len(lengths) and (lengths != lengths[0]).any():
        bad = int(np.flatnonzero(lengths != lengths[0])[0])
        raise AttarError(
            f"Row {numbers[bad]} of {where} has {lengths[bad]} numbers in {name!r} where others have {lengths[0]}: "
            "give every row as many."
        )
    return np.asarray(flat).reshape(len(column), -1)


def _lists_of(type: Any, inner: Any) -> Any:
    arrow = require("pyarrow", "parquet")
    if arrow.types.is_fixed_size_list(type):
        return arrow.list_(inner, type.list_size)
    return arrow.large_list(inner) if arrow.types.is_large_list(type) else arrow.list_(inner)


def _is_list(type: Any) -> bool:
    types = require("pyarrow", "parquet").types
    return bool(types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type))


def _is_number(type: Any) -> bool:
    types = require("pyarrow", "parquet").types
    return bool(types.is_floating(type) or types.is_integer(type) or types.is_boolean(type))
