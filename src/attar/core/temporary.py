"""Temporary folders beside what is written, removed also if the process that made them was killed."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY = ".attar-tmp"  #: suffix of temporary folders; no reader uses it


@contextmanager
def temporary(target: Path) -> Iterator[Path]:
    """Yield a path with the name of ``target`` in a hidden folder beside it; the folder is removed at the end.

    A folder, because some libraries write their own temporary files beside the target. Its name holds the process id
    and a hash of the host. The next write into the same place removes the folders of processes that have ended.
    Folders of running processes, and of other hosts or containers, are never touched.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    start = f".{target.name[:50]}.{os.getpid()}-{_processes()}."  # within the longest name that file systems allow
    folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=start, suffix=TEMPORARY))
    try:
        yield folder / target.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(place: Path) -> None:
    """Remove the temporary folders in ``place`` whose process is gone; every write does so first."""
    made = re.compile(rf"\..*\.(\d{{1,9}})-{_processes()}\.\w+{re.escape(TEMPORARY)}", re.DOTALL)
    with suppress(OSError):  # the write that follows reports an unusable folder
        for path in place.iterdir():
            found = made.fullmatch(path.name)
            if found and not _alive(int(found[1])):
                shutil.rmtree(path, ignore_errors=True)


def _processes() -> str:
    """A hash of host and container: process ids are unique only within one of them."""
    space = Path("/proc/self/ns/pid")  # Linux
    where = f"{platform.node()} {space.readlink() if space.exists() else ''}"
    return hashlib.blake2b(where.encode(), digest_size=4).hexdigest()


def _alive(process: int) -> bool:
    try:
        with suppress(PermissionError):  # it runs as another user
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
