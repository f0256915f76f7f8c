"""Exports as images: a folder per class, or a contact sheet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from attar.core.errors import AttarError
from attar.coreset import Coreset, warn_lost
from attar.export.numbers import class_names, write_csv
from attar.report.images import contact_sheet, is_image, tile

LIST = "examples.csv"
LONGEST = 60  #: characters in a folder name: even with four bytes each, every file system allows it

# Many readers, ours included, take "train" for a split; the others are devices on Windows.
_TAKEN = re.compile(r"(train|con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def write_folder(coreset: Coreset, path: Path) -> None:
    """``class/number.png`` for each example, and ``examples.csv`` with one line per number."""
    _require_images(coreset)
    names, pixels, digits = folder_names(class_names(coreset)), coreset.pixels(), len(str(len(coreset) - 1))
    for number, label in enumerate(coreset.data.hard.tolist()):
        folder = path / names[label]
        folder.mkdir(exist_ok=True)
        tile(pixels[number], 1).save(folder / f"{number:0{digits}d}.png")
    write_csv(coreset, path / LIST)


def write_sheet(coreset: Coreset, path: Path) -> None:
    """All examples in one PNG image, one named row per class."""
    _require_images(coreset)
    lost = {"soft labels": coreset.soft, "weights": coreset.weighted}
    warn_lost("A contact sheet", [name for name, held in lost.items() if held], "export npz or csv too")
    names = [" ".join(name.split()) for name in class_names(coreset)]
    contact_sheet(coreset.pixels(), coreset.data.hard, names).save(path, "PNG")


def folder_names(classes: Sequence[str]) -> list[str]:
    """A safe folder name per class, prefixed by its number if the names alone would change the order.

    Readers number the classes by sorting folders, so only sorted and distinct names keep the labels.
    """
    safe = [re.sub(r"[^\w .-]+", "_", name)[:LONGEST].strip(" .") for name in classes]
    distinct = len({name.casefold() for name in safe}) == len(safe)
    if distinct and all(safe) and safe == sorted(safe) and not any(map(_TAKEN.fullmatch, safe)):
        return safe
    digits = len(str(len(safe) - 1))
    return [f"{number:0{digits}d}-{name}".rstrip("-") for number, name in enumerate(safe)]


def _require_images(coreset: Coreset) -> None:
    if not is_image(coreset.data.spec.element):
        raise AttarError(
            f"Examples of shape {coreset.data.shape} are not gray or colour images: export them as npz, parquet, hf "
            "or csv."
        )
