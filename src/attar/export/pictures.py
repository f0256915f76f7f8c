"""Exports as pictures: a folder of images for each class, a contact sheet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.export.numbers import class_names, write_csv
from attar.report.images import contact_sheet, is_image, tile

LIST = "examples.csv"
LONGEST = 60  #: characters of a folder's name: four bytes each still fit every file system

# "train" marks a folder of splits for many readers, ours too; the others are devices on Windows.
_TAKEN = re.compile(r"(train|con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def write_folder(coreset: Coreset, path: Path) -> None:
    """``class/number.png`` for each example, and ``examples.csv``, whose lines are in the order of the numbers."""
    _require_images(coreset)
    names, pixels, digits = folder_names(class_names(coreset)), coreset.pixels(), len(str(len(coreset) - 1))
    for number, label in enumerate(coreset.data.hard.tolist()):
        folder = path / names[label]
        folder.mkdir(exist_ok=True)
        tile(pixels[number], 1).save(folder / f"{number:0{digits}d}.png")
    write_csv(coreset, path / LIST)


def write_sheet(coreset: Coreset, path: Path) -> None:
    """All examples in one PNG image, a named row for each class."""
    _require_images(coreset)
    names = [" ".join(name.split()) for name in class_names(coreset)]
    contact_sheet(coreset.pixels(), coreset.data.hard, names).save(path, "PNG")


def folder_names(classes: Sequence[str]) -> list[str]:
    """A safe name for each class, with its number in front where the names alone would be read in another order.

    Whoever reads folders of classes numbers the classes by sorting, so only sorted and distinct names keep the labels.
    """
    safe = [re.sub(r"[^\w .-]+", "_", name)[:LONGEST].strip(" .") for name in classes]
    distinct = len({name.casefold() for name in safe}) == len(safe)
    if distinct and all(safe) and safe == sorted(safe) and not any(map(_TAKEN.fullmatch, safe)):
        return safe
    digits = len(str(len(safe) - 1))
    return [f"{number:0{digits}d}-{name}".rstrip("-") for number, name in enumerate(safe)]


def _require_images(coreset: Coreset) -> None:
    if not is_image(coreset.data.shape):
        raise AttarError(
            f"Examples of shape {coreset.data.shape} are not gray or colour images: export them as npz, parquet, hf "
            "or csv."
        )
