"""Parquet files: tables, or images as bytes, in one file or in the parts of a folder as on the Hugging Face hub."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attar.core.errors import AttarError, require
from attar.core.files import require_read
from attar.data.formats import hf, images, table
from attar.data.formats.arrow import verify
from attar.data.raw import RawSplit, join, pack

PARTS = {"train": "train", "test": "test", "validation": "validation", "val": "validation"}  #: by the names of files


def read(path: Path, target: str | None) -> RawSplit:
    """A Parquet file: columns of a table, or one of images, and one label column."""
    return _read([path], path, target)


def read_folder(folder: Path, target: str | None) -> RawSplit:
    """``train-*.parquet``, and perhaps ``test-*`` and ``validation-*``, in a folder or its folder ``data``.

    Without such names all files are parts of the training set.
    """
    files = sorted(folder.glob("*.parquet")) or sorted(folder.glob("data/*.parquet"))
    found: dict[str, list[Path]] = {}
    for file in files:
        begin = file.name.removesuffix(".parquet").partition("-")[0]
        found.setdefault(PARTS.get(begin, ""), []).append(file)
    if set(found) == {""}:
        return _read(found[""], folder, target)
    if "train" not in found or "" in found:
        odd = found.get("", files)[0].name
        raise AttarError(f"{folder} holds {odd}: call its files train-*.parquet, test-*.parquet, validation-*.parquet.")
    split = _read(found["train"], folder, target)
    for part in ("test", "validation"):
        if part in found:
            split = join(split, _read(found[part], folder, target), str(folder), part)
    return split


def _read(paths: Sequence[Path], where: Path, target: str | None) -> RawSplit:
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    verify(paths, where)
    try:
        read = arrow.concat_tables([parquet.ParquetFile(path).read() for path in paths])
    except (arrow.ArrowException, OSError) as error:
        require_read(where, error)
        raise AttarError(f"{where} is not complete in Parquet ({error}): write it again.") from error
    label, names = table.pick(read.column_names, target, str(where)), read.column_names
    pictures = [name for name in names if name != label and _holds_images(arrow.types, read[name].type)]
    if not pictures:
        split = table.from_arrays({name: _plain(arrow, read[name]) for name in names}, label, str(where))
    else:
        others = [name for name in names if name not in (label, pictures[0])]
        if others:
            warnings.warn(
                f"The examples of {where} are the images in column {pictures[0]!r}: {', '.join(others)} "
                f"{'is' if len(others) == 1 else 'are'} not used.",
                stacklevel=2,
            )
        x = _images(read[pictures[0]].to_pylist(), where)
        split = table.labelled(x, None, np.asarray(_plain(arrow, read[label])), label, str(where))
    classes = _classes(read.schema.metadata, label)
    numbered = split.classes == tuple(str(k) for k in range(len(split.classes)))
    if classes is None or not numbered or len(classes) < len(split.classes):
        return split
    return pack(split.train.x, split.train.y, str(where), classes, columns=split.train.columns)


def _holds_images(types: Any, kind: Any) -> bool:
    """Whether values are bytes, or the hub's pairs of bytes and path."""
    if types.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0 and kind.get_field_index("path") >= 0)
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _images(values: Sequence[Any], where: Path) -> NDArray[Any]:
    names = [f"image {index} of {where}" for index in range(len(values))]
    pairs = zip(values, names, strict=True)
    if not values:
        raise AttarError(f"{where} holds no image: write at least one of each class.")
    if all(isinstance(value, bytes) for value in values):
        return images.stack([images.decode(BytesIO(value), name) for value, name in pairs], names)
    return images.stack([hf.picture(value, name, None) for value, name in pairs], names)


def _classes(metadata: dict[bytes, bytes] | None, label: str) -> tuple[str, ...] | None:
    """The names of classes that files of the hub hold in their schema."""
    try:
        names = json.loads((metadata or {})[b"huggingface"])["info"]["features"][label]["names"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return tuple(map(str, names)) if isinstance(names, list) and len(set(map(str, names))) == len(names) else None


def _plain(arrow: Any, column: Any) -> Any:
    """A column as an array, with None, NaN or NaT where it is null; ordered categories as places and words."""
    kind = arrow.types
    if kind.is_dictionary(column.type) and column.type.ordered and column.num_chunks:
        whole = column.unify_dictionaries()
        places = [part.indices.cast(arrow.float64()).to_numpy(zero_copy_only=False) for part in whole.chunks]
        return np.concatenate(places), tuple(map(str, whole.chunk(0).dictionary.to_pylist()))
    if kind.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind.is_decimal(column.type) or kind.is_null(column.type):
        return column.cast(arrow.float64()).to_numpy()
    if kind.is_date(column.type) or kind.is_timestamp(column.type):
        return column.cast(arrow.timestamp("us"), safe=False).to_numpy()  # nanoseconds are cut
    return np.array(column.to_pylist(), dtype=object) if kind.is_boolean(column.type) else column.to_numpy()
