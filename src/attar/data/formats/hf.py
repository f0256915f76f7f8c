"""Data sets of the Hugging Face ``datasets`` package: a folder from ``save_to_disk`` or a name on the hub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attar.core.errors import AttarError, require
from attar.data.formats import images, table
from attar.data.raw import RawSplit, join, pack


def read_folder(path: Path, target: str | None) -> RawSplit:
    """A folder written by ``save_to_disk``."""
    datasets = require("datasets", "hf")
    try:
        return _splits(datasets.load_from_disk(str(path)), target, str(path))
    except (OSError, KeyError, TypeError) as error:
        raise AttarError(f"{path} is not a complete data set ({error}): write it again with save_to_disk.") from error


def read_hub(name: str, target: str | None, cache: Path, *, online: bool) -> RawSplit:
    """A public data set of the hub, cached under ``cache``; code from the hub is never run."""
    datasets = require("datasets", "hf")
    config = datasets.DownloadConfig(local_files_only=not online)
    try:
        loaded = datasets.load_dataset(name, cache_dir=str(cache), download_config=config)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise AttarError(
            f"Could not load {name} from the hub ({reason}): check the name and the network, or give a "
            "folder written by save_to_disk."
        ) from error
    return _splits(loaded, target, name)


def is_loaded(source: object) -> bool:
    """Whether this is a ``Dataset`` or ``DatasetDict`` of the package, without importing it."""
    return type(source).__module__.partition(".")[0] == "datasets"


def read_loaded(source: Any, target: str | None) -> RawSplit:
    """A ``Dataset`` or ``DatasetDict`` in memory."""
    return _splits(source, target, f"the {type(source).__name__}")


def _splits(loaded: Any, target: str | None, where: str) -> RawSplit:
    parts = loaded if isinstance(loaded, Mapping) else {"train": loaded}
    if "train" not in parts:
        raise AttarError(f"{where} has the splits {', '.join(parts) or 'none'}: rename the one to train on to 'train'.")
    found = _part(parts["train"], target, where)
    if "test" in parts:
        found = join(found, _part(parts["test"], target, where), where)
    if "validation" in parts:
        found = join(found, _part(parts["validation"], target, where), where, "validation")
    return found


def _part(part: Any, target: str | None, where: str) -> RawSplit:
    label = table.pick(part.column_names, target, where)
    x, columns = _examples(part.remove_columns(label), where)
    labels = np.asarray(part.with_format("numpy")[label][:])
    feature = part.features[label]
    names = feature.names if isinstance(feature, require("datasets", "hf").ClassLabel) else None
    if names:
        return pack(x, labels, where, names, columns=columns)
    return table.from_columns(x, labels, label, where, columns)


def _examples(part: Any, where: str) -> tuple[NDArray[Any], list[str] | None]:
    """The column of images or texts if there is one, else one column of arrays, else all as numeric features."""
    datasets = require("datasets", "hf")
    pictures = [name for name, feature in part.features.items() if isinstance(feature, datasets.Image)]
    if pictures:
        names = [f"image {index} of {where}" for index in range(len(part))]
        column = part.select_columns(pictures[0])
        arrays = [images.to_array(row[pictures[0]], at) for row, at in zip(column, names, strict=True)]
        return images.stack(arrays, names), None
    columns = {name: np.asarray(part.with_format("numpy")[name][:]) for name in part.column_names}
    only = next(iter(columns.values())) if len(columns) == 1 else None
    if only is not None and (only.ndim > 1 or only.dtype.kind in "UO"):
        return only, None
    return table.examples(columns, where)
