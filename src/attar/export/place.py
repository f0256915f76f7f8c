"""Folders that are either whole or not there."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attar.core.errors import AttarError


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; it becomes ``path`` only if all went well and nothing is lost by it."""
    target = Path(path).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise AttarError(f"{path} is there already and not an empty folder: choose another place or remove it first.")
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        part.mkdir(parents=True)
        yield part
        for written in [*part.rglob("*"), part]:
            _sync(written)
        part.replace(target)  # the system refuses this where someone filled the folder in the meantime
        _sync(target.parent)
    except OSError as error:
        raise AttarError(
            f"Could not write {path} ({error}): free space or choose another place; nothing was replaced."
        ) from error
    finally:
        if part.exists():
            shutil.rmtree(part)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
