"""Data sets of the Hugging Face ``datasets`` package: a folder from ``save_to_disk`` or a name on the hub."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attar.core.errors import AttarError, require
from attar.core.files import read_json
from attar.data.columns import Header
from attar.data.formats import images, table
from attar.data.formats.arrow import verify
from attar.data.raw import RawSplit, join, pack

VALUES = ("Value", "ClassLabel", "Image", "Array2D", "Array3D", "Array4D", "Array5D")  #: columns that are read


def read_folder(path: Path, target: str | None) -> RawSplit:
    """A folder written by ``save_to_disk``."""
    datasets = require("datasets", "hf")
    verify(files(path), path)
    try:
        return _splits(datasets.load_from_disk(str(path)), target, str(path), None)
    except AttarError:
        raise
    except Exception as error:  # a damaged description makes the package fail in any way
        reason = " ".join(str(error).split())[:200]
        raise AttarError(f"{path} is not a complete data set ({reason}): write it again with save_to_disk.") from error


def files(path: Path) -> list[Path]:
    """The Arrow files that a folder names; each must lie directly in the folder of its split."""
    listed, found = path / "dataset_dict.json", []
    parts = [path / name for name in _names(listed, "splits", str)] if listed.is_file() else [path]
    for part in parts:
        found += [part / name for name in _names(part / "state.json", "_data_files", lambda file: file["filename"])]
    for file in found:
        if not file.is_file():
            raise AttarError(f"{path} is not a complete data set (no {file.name}): write it again with save_to_disk.")
    return found


def _names(path: Path, key: str, name: Callable[[Any], str]) -> list[str]:
    """The names that a JSON file lists under a key, without folders: what a file names is not opened elsewhere."""
    about = read_json(path)
    try:
        names = [name(item) for item in about[key]]
        if not all(item not in ("", "..") and Path(item).name == item for item in names):
            raise ValueError(f"{', '.join(names)} is not a name beside it")
    except (KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise AttarError(f"{path} is not of a data set ({reason}): write it again with save_to_disk.") from error
    return names


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
    return _splits(loaded, target, name, cache)


def is_loaded(source: object) -> bool:
    """Whether this is a ``Dataset`` or ``DatasetDict`` of the package, without importing it."""
    return type(source).__module__.partition(".")[0] == "datasets"


def read_loaded(source: Any, target: str | None) -> RawSplit:
    """A ``Dataset`` or ``DatasetDict`` in memory."""
    return _splits(source, target, f"the {type(source).__name__}", Path("/"))


def _splits(loaded: Any, target: str | None, where: str, inside: Path | None) -> RawSplit:
    """All sets; rows that name an image file are followed only ``inside`` this folder, or nowhere."""
    parts = loaded if isinstance(loaded, Mapping) else {"train": loaded}
    if "train" not in parts:
        raise AttarError(f"{where} has the splits {', '.join(parts) or 'none'}: rename the one to train on to 'train'.")
    found = _part(parts["train"], target, where, inside)
    if "test" in parts:
        found = join(found, _part(parts["test"], target, where, inside), where)
    if "validation" in parts:
        found = join(found, _part(parts["validation"], target, where, inside), where, "validation")
    return found


def _part(part: Any, target: str | None, where: str, inside: Path | None) -> RawSplit:
    label = table.pick(part.column_names, target, where)
    for name, feature in part.features.items():
        _require_values(feature, name, where)
    x, columns = _examples(part.remove_columns(label), where, inside)
    labels = np.asarray(part.with_format("numpy")[label][:])
    feature = part.features[label]
    names = feature.names if isinstance(feature, require("datasets", "hf").ClassLabel) else None
    if names:
        return pack(x, labels, where, names, columns=columns)
    return table.labelled(x, columns, labels, label, where)


def _require_values(feature: Any, name: str, where: str) -> None:
    """Refuse columns that the package would decode itself, following paths in them: sounds, films, lists of images."""
    inner = getattr(feature, "feature", None)
    if inner is not None and type(inner).__name__ != "Image":
        return _require_values(inner, name, where)
    if inner is not None or type(feature).__name__ not in VALUES:
        raise AttarError(f"Column {name!r} of {where} holds {type(feature).__name__}: leave that column out.")
    return None


def picture(row: Any, name: str, inside: Path | None) -> NDArray[np.uint8]:
    """The pixels of an image that is not decoded yet."""
    if not isinstance(row, Mapping) or (row["bytes"] is None and row["path"] is None):
        raise AttarError(f"{name} is missing: fill it in or drop that row.")
    if row["bytes"] is not None:
        return images.decode(BytesIO(row["bytes"]), name)
    path = Path(row["path"])
    if inside is None or not path.resolve().is_relative_to(inside.resolve()):
        raise AttarError(
            f"{name} is the path {row['path']!r}, which is not followed: write the data set again with save_to_disk, "
            "which embeds images."
        )
    return images.decode(path, name)


def _examples(part: Any, where: str, inside: Path | None) -> tuple[NDArray[Any], list[Header] | None]:
    """The column of images if there is one, else one column of arrays or texts, else the columns of a table."""
    datasets = require("datasets", "hf")
    pictures = [name for name, feature in part.features.items() if isinstance(feature, datasets.Image)]
    if pictures:
        names = [f"image {index} of {where}" for index in range(len(part))]
        column = part.select_columns(pictures[0]).cast_column(pictures[0], datasets.Image(decode=False))
        arrays = [picture(row[pictures[0]], at, inside) for row, at in zip(column, names, strict=True)]
        return images.stack(arrays, names), None
    columns = {name: np.asarray(part.with_format("numpy")[name][:]) for name in part.column_names}
    only = next(iter(columns.values())) if len(columns) == 1 else None
    if only is not None and (only.ndim > 1 or only.dtype.kind in "UO"):
        return only, None
    return table.examples(columns, where)
