"""Folders that are either whole or not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attar.core.errors import AttarError
from attar.core.files import sync, temporary


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; it becomes ``path`` only if all went well and nothing is lost by it."""
    target = Path(path).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise AttarError(f"{path} is there already and not an empty folder: choose another place or remove it first.")
    try:
        with temporary(target) as part:
            part.mkdir()
            yield part
            for written in [*part.rglob("*"), part]:
                sync(written)
            part.replace(target)  # the system refuses this where someone filled the folder in the meantime
        sync(target.parent)
    except OSError as error:
        raise AttarError(
            f"Could not write {path} ({error}): free space or choose another place; nothing was replaced."
        ) from error
