"""A folder of images or texts per class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attar.core.errors import AttarError
from attar.data.formats.images import decode, stack
from attar.data.formats.lines import text_of
from attar.data.raw import RawSplit, join, pack

SUFFIXES = {".png", ".jpg", ".jpeg"}


def read(folder: Path) -> RawSplit:
    """``class/image.png`` or ``class/text.txt`` for each class, or the same under ``train`` and ``test``.

    The folders name the classes. Texts beside images are not read.
    """
    if not (folder / "train").is_dir():
        return _classes(folder)
    train = _classes(folder / "train")
    return join(train, _classes(folder / "test"), str(folder)) if (folder / "test").is_dir() else train


def texts(folder: Path, classes: Sequence[str] | None = None) -> RawSplit:
    """``class/text.txt``: every file is one example.

    Args:
        folder: The folder of the classes.
        classes: Names of their folders; by default all.
    """
    places = [place for place in _folders(folder) if classes is None or place.name in classes]
    files = {place: _files(place, {".txt"}) for place in places}
    for place, inside in files.items():
        if not inside:
            raise AttarError(f"{place} holds no .txt file: add texts of this class, or remove the folder.")
    every = [path for inside in files.values() for path in inside]
    x = np.array([text_of(path) for path in every], dtype=object)
    return _packed(x, every, folder)


def _classes(folder: Path) -> RawSplit:
    images = [path for place in _folders(folder) for path in _files(place, SUFFIXES)]
    if images:
        return _packed(
            stack([decode(path, str(path)) for path in images], [str(path) for path in images]), images, folder
        )
    if any(_files(place, {".txt"}) for place in _folders(folder)):
        return texts(folder)
    raise AttarError(
        f"{folder} holds no supported data: give a folder of PNG or JPEG images for each class, or of .txt files, or "
        "{'train': ..., 'test': ...} with two files."
    )


def _packed(x: NDArray[Any], files: Sequence[Path], folder: Path) -> RawSplit:
    keys = [path.relative_to(folder).as_posix() for path in files]
    return pack(x, np.array([path.parent.name for path in files]), str(folder), keys=keys)


def _files(folder: Path, suffixes: set[str]) -> list[Path]:
    return [path for path in _sorted(folder) if path.suffix.lower() in suffixes and path.is_file()]


def _folders(folder: Path) -> list[Path]:
    return [place for place in _sorted(folder) if place.is_dir()]


def _sorted(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
