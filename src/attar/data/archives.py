"""Take the expected files out of archives."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from attar.core import budget
from attar.core.errors import AttarError
from attar.core.files import atomic, unread
from attar.data.raw import DAMAGED_ARCHIVE
from attar.data.sources import Remote
from attar.data.verified import remember, unpacked

CHUNK = 1 << 18


def unpack(archive: Path, remote: Remote, folder: Path) -> None:
    """Copy the files of ``remote`` out of the archive and remove it.

    Only the expected files are written, under their own names, if they fit into the memory that files may take. A
    member of the archive whose path points outside the folder is not read.
    """
    take = _from_zip if archive.suffix == ".zip" else _from_tar
    try:
        raw = _Raw(archive)
    except OSError as error:
        raise unread(archive, error) from error
    with raw, io.BufferedReader(raw) as file:
        try:
            with budget.within(budget.left()):
                missing = take(file, archive, set(remote.files), folder)
        except DAMAGED_ARCHIVE as error:  # an AttarError is one of them
            if raw.failed is not None:
                raise unread(archive, raw.failed) from error
            if isinstance(error, AttarError):
                raise
            raise AttarError(f"{archive} is not a complete archive ({error}): delete it and load again.") from error
    if missing:
        raise AttarError(f"{archive} holds no {', '.join(sorted(missing))}: delete it and load again.")
    remember(folder, {file: unpacked(folder / file) for file in remote.files})
    archive.unlink()


class _Raw(io.FileIO):
    """A file that remembers why it could not be read, because libraries of archives report that as damage."""

    failed: OSError | None = None

    def readinto(self, buffer: Any) -> int | None:
        try:
            return super().readinto(buffer)
        except OSError as error:
            self.failed = error
            raise


def _from_tar(file: IO[bytes], archive: Path, wanted: set[str], folder: Path) -> set[str]:
    with tarfile.open(fileobj=file) as tar:
        for member in tar:
            if member.isreg() and member.name in wanted and (source := tar.extractfile(member)) is not None:
                budget.claim(member.size, f"{member.name} in {archive}")
                _copy(source, folder / member.name)
                wanted.discard(member.name)
    return wanted


def _from_zip(file: IO[bytes], archive: Path, wanted: set[str], folder: Path) -> set[str]:
    with zipfile.ZipFile(file) as packed:
        for name in wanted & set(packed.namelist()):
            budget.claim(packed.getinfo(name).file_size, f"{name} in {archive}")
            with packed.open(name) as source:
                _copy(source, folder / name)
            wanted.discard(name)
    return wanted


def _copy(source: IO[bytes], path: Path) -> None:
    with atomic(path) as part, part.open("wb") as file:
        file.writelines(_pieces(source))


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    try:
        while piece := source.read(CHUNK):
            yield piece
    except OSError as error:  # of the archive: not to be reported as one of writing
        raise tarfile.ReadError(str(error)) from error
