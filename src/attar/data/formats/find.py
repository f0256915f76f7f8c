"""Files as people keep them: in the folder an archive makes or beside it, gzipped or not."""

from __future__ import annotations

from pathlib import Path

from attar.core.errors import AttarError


def find(folder: Path, name: str) -> Path | None:
    """The file ``name`` in ``folder``, without its own folders or without its ``.gz`` if need be."""
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
