"""A folder of images per class."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from attar.core.errors import AttarError
from attar.data.formats.images import stack, to_array
from attar.data.raw import RawSplit, join, pack

SUFFIXES = {".png", ".jpg", ".jpeg"}


def read(folder: Path) -> RawSplit:
    """``class/image.png`` for each class, or the same under ``train`` and ``test``; the folders name the classes."""
    if not (folder / "train").is_dir():
        return _classes(folder)
    train = _classes(folder / "train")
    return join(train, _classes(folder / "test"), str(folder)) if (folder / "test").is_dir() else train


def _classes(folder: Path) -> RawSplit:
    files = [(image, place.name) for place in _sorted(folder) if place.is_dir() for image in _images(place)]
    if not files:
        raise AttarError(
            f"{folder} holds no supported data: give a folder of PNG or JPEG images for each class, or "
            "{'train': ..., 'test': ...} with two files."
        )
    names = [str(path) for path, _ in files]
    pixels = stack([_open(path) for path, _ in files], names)
    keys = [path.relative_to(folder).as_posix() for path, _ in files]
    return pack(pixels, np.array([label for _, label in files]), str(folder), keys=keys)


def _images(folder: Path) -> Iterator[Path]:
    return (path for path in _sorted(folder) if path.suffix.lower() in SUFFIXES and path.is_file())


def _sorted(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _open(path: Path) -> NDArray[np.uint8]:
    try:
        with Image.open(path) as image:
            return to_array(image, str(path))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise AttarError(f"{path} is not a complete image ({error}): replace or delete it.") from error
