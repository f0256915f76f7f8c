"""Atomic folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attar.core.errors import AttarError
from attar.core.files import sync, unwritten
from attar.core.temporary import temporary


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder; on success it becomes ``path``, which must be new or an empty folder."""
    target = Path(path).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise AttarError(f"{path} already exists and is not an empty folder: choose another place or remove it first.")
    try:
        with temporary(target) as part:
            part.mkdir()
            yield part
            for written in [*part.rglob("*"), part]:
                sync(written)
            part.replace(target)  # fails if the folder was filled in the meantime
        sync(target.parent)
    except OSError as error:
        raise unwritten(path, error) from error
