"""Find the files of known data sets: in the folder of their archive or directly, gzipped or not."""

from __future__ import annotations

from pathlib import Path

from attar.core.errors import AttarError


def find(folder: Path, name: str) -> Path | None:
    """The file ``name`` in ``folder``, also without its sub-folders or without ``.gz``; None if there is none."""
    whole, base = folder / name, folder / Path(name).name
    places = (
        whole,
        base,
        whole.with_name(base.name.removesuffix(".gz")),
        base.with_name(base.name.removesuffix(".gz")),
    )
    return next((place for place in places if place.is_file()), None)


def found(folder: Path, name: str) -> Path:
    """The file, or an error that names it."""
    path = find(folder, name)
    if path is None:
        raise AttarError(f"There is no file {Path(name).name} in {folder}: put it there or check the path.")
    return path
