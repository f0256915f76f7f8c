"""One writer at a time: locks on files and folders, which the system frees when their process ends, however it ends."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import platform
import re
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attar.core.errors import AttarError
from attar.core.files import unwritten

SUFFIX = ".attar-lock"
POLL = 0.1  #: seconds between two attempts
LACKING = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)  #: a file system without locks


@contextmanager
def claimed(path: str | Path) -> Iterator[None]:
    """Make sure, before the work, that a file can be written, and keep other processes from writing it meanwhile.

    Its folder is made. A folder or device of this name, a place where nothing can be written, and a file that another
    process is working on are errors.
    """
    target = Path(path)
    with _as_sentence(target):
        if target.is_dir():
            raise AttarError(f"{target} is a folder: give the name of a file, such as {target / 'result'}.")
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            raise AttarError(f"{target} is a device, not a file: choose another place.")
        target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(_beside(target), target):
        yield


@contextmanager
def owned(folder: str | Path) -> Iterator[None]:
    """The same for a folder of results, which is made if it is missing."""
    target = made(Path(folder))
    with _locked(target / SUFFIX, target):
        yield


@contextmanager
def in_turn(target: str | Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Work on a file, or an existing folder, one process after the other: the next one finds what the last one made.

    Args:
        target: What is made.
        waiting: Called now and then while another process has the lock.
    """
    place = Path(target)
    if not place.is_dir():
        made(place.parent)
    with _locked(place / SUFFIX if place.is_dir() else _beside(place), place, waiting or (lambda: None)):
        yield


@contextmanager
def _locked(lock: Path, target: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    with _as_sentence(target):
        handle = _acquire(lock)
        if handle is None and waiting is None:
            raise AttarError(
                f"{target} is in use by {_holder(lock)}: wait until that has ended, or choose another place."
            )
        if handle is None:
            warnings.warn(f"Waiting for {_holder(lock)}, which works on {target}.", stacklevel=4)
        while handle is None and waiting is not None:
            waiting()
            time.sleep(POLL)
            handle = _acquire(lock)
    try:
        yield
    finally:
        with suppress(OSError):  # what is left of a lock does no harm
            lock.unlink()
        if handle is not None:
            os.close(handle)


def _acquire(lock: Path) -> int | None:
    """The open lock file, which is ours; None if another process has it.

    A lock file is removed when it is freed. So another one may be there by the time that we have locked ours.
    """
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            _lock(handle, lock)
            if _same(handle, lock):
                _sign(handle, lock)
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _sign(handle: int, lock: Path) -> None:
    """Write who has the lock; a full disk is found here."""
    try:
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()} {platform.node()}\n".encode())
        os.fsync(handle)
    except OSError:
        lock.unlink(missing_ok=True)
        raise


def _lock(handle: int, lock: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in LACKING:
            raise
        warnings.warn(
            f"The file system of {lock.parent} has no locks: make sure that one process at a time writes there.",
            stacklevel=6,
        )


def _same(handle: int, lock: Path) -> bool:
    """Whether the open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), lock.stat())
    except FileNotFoundError:
        return False


def _holder(lock: Path) -> str:
    """Who has the lock, in words."""
    try:
        with lock.open("rb") as file:
            found = re.fullmatch(rb"(\d{1,9}) ([\w.-]{1,100})\n", file.read(200))
    except OSError:
        found = None
    return f"process {found[1].decode()} on {found[2].decode()}" if found else "another process"


def made(folder: Path) -> Path:
    """A folder that is there, or is made now."""
    with _as_sentence(folder):
        if folder.exists() and not folder.is_dir():
            raise AttarError(f"{folder} is a file: give the name of a folder.")
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _as_sentence(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritten(target, error) from error


def _beside(target: Path) -> Path:
    name = hashlib.blake2b(os.fsencode(target.name), digest_size=8).hexdigest()  # names may be too long to add to
    return target.with_name(f".{name}{SUFFIX}")
