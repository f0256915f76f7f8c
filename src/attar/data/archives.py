"""Take the expected files out of archives."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import IO

from attar.core import budget
from attar.core.errors import AttarError
from attar.core.files import atomic
from attar.data.raw import DAMAGED_ARCHIVE
from attar.data.sources import Remote
from attar.data.verified import remember, unpacked

CHUNK = 1 << 18


def unpack(archive: Path, remote: Remote, folder: Path) -> None:
    """Copy the files of ``remote`` out of the archive and remove it.

    Only the expected files are written, under their own names, if they fit into the memory that files may take. A
    member of the archive whose path points outside the folder is not read.
    """
    try:
        with budget.within(budget.left()):
            missing = (_from_zip if archive.suffix == ".zip" else _from_tar)(archive, set(remote.files), folder)
    except AttarError:
        raise
    except DAMAGED_ARCHIVE as error:
        raise AttarError(f"{archive} is not a complete archive ({error}): delete it and load again.") from error
    if missing:
        raise AttarError(f"{archive} holds no {', '.join(sorted(missing))}: delete it and load again.")
    remember(folder, {file: unpacked(folder / file) for file in remote.files})
    archive.unlink()


def _from_tar(archive: Path, wanted: set[str], folder: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isreg() and member.name in wanted and (source := tar.extractfile(member)) is not None:
                budget.claim(member.size, f"{member.name} in {archive}")
                _copy(source, folder / member.name)
                wanted.discard(member.name)
    return wanted


def _from_zip(archive: Path, wanted: set[str], folder: Path) -> set[str]:
    with zipfile.ZipFile(archive) as packed:
        for name in wanted & set(packed.namelist()):
            budget.claim(packed.getinfo(name).file_size, f"{name} in {archive}")
            with packed.open(name) as source:
                _copy(source, folder / name)
            wanted.discard(name)
    return wanted


def _copy(source: IO[bytes], path: Path) -> None:
    with atomic(path) as part, part.open("wb") as file:
        shutil.copyfileobj(source, file, CHUNK)
