"""Downloaded files are compared with their published sums, once: an unchanged file is known by its size and time."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import read_json, write_json

RECORD = ".attar-verified.json"


class Seen(NamedTuple):
    """A file as it was last seen."""

    size: int
    time: int  #: of its last change, in nanoseconds
    digest: str | None  #: None if it is not the published file


def digest_of(file: BufferedReader | BufferedRandom, like: str) -> str:
    """The digest of a file's content, of the kind of another one: MD5 if that has 32 digits, SHA-256 if it has 64."""
    kind = "md5" if len(like) == 32 else "sha256"
    return hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()


def verify(folder: Path, names: Mapping[str, str | None]) -> None:
    """Compare files with what they should be, where they changed since they were last seen.

    A file that was the published one and has changed is refused. One that never was, because somebody put it there, is
    used with a warning.

    Args:
        folder: The folder of a data set.
        names: Its files, with their published digests; None for a file from an archive, which must be as it was
            unpacked.
    """
    record = _read(folder)
    found = {name: _seen(folder / name, digest, record.get(name)) for name, digest in names.items()}
    new = {name: seen for name, seen in found.items() if seen is not None and seen != record.get(name)}
    if new:
        remember(folder, new)


def remember(folder: Path, seen: Mapping[str, Seen]) -> None:
    """Record what files are; where that cannot be written, they are compared again next time."""
    with suppress(AttarError):
        write_json(folder / RECORD, _read(folder) | dict(seen))


def unpacked(path: Path) -> Seen:
    """A file as it was unpacked from a published archive."""
    with path.open("rb") as file:
        digest = digest_of(file, like="0" * 64)
    about = path.stat()
    return Seen(about.st_size, about.st_mtime_ns, digest)


def _seen(path: Path, published: str | None, before: Seen | None) -> Seen | None:
    """What a file is now; None if nothing is known of what it should be."""
    about = path.stat()
    if before is not None and (about.st_size, about.st_mtime_ns) == before[:2]:
        return before
    expected = published or (before.digest if before else None)
    if expected is None:
        return None
    with path.open("rb") as file:
        digest = digest_of(file, expected)
    if digest == expected:
        return Seen(about.st_size, about.st_mtime_ns, digest)
    if before is not None and before.digest is not None:
        raise AttarError(f"{path} has changed since it was downloaded: delete it and load again.")
    warnings.warn(
        f"{path} is not the published file (its digest is {digest}, not {expected}): it is used as it is; delete it to "
        "download the published one.",
        stacklevel=5,
    )
    return Seen(about.st_size, about.st_mtime_ns, None)


def _read(folder: Path) -> dict[str, Seen]:
    try:
        return TypeAdapter(dict[str, Seen]).validate_python(read_json(folder / RECORD))
    except (MissingFile, DamagedFile, ValidationError):
        return {}
