"""One limit for all readers: what files bring into memory is counted before it is allocated.

Small files can say or unpack to far more than fits. Readers therefore ``claim`` what the header of a file announces. A
reading (``within``) has one account: the claims of all its files add up.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from attar.core.cost import available
from attar.core.errors import AttarError

VARIABLE = "ATTAR_MAX_BYTES"
MOST_DIMENSIONS = 8  #: of an array
MOST_CHARACTERS = 1000  #: of a name: a class, a column, a method
MOST_NESTED = 100  #: lists and tables within one another
PARSED = 24  #: bytes of Python objects per byte of JSON or TOML, at worst

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?)B?\s*", re.IGNORECASE)


@dataclass
class Account:
    """How much one reading may take, and how much of it is taken."""

    most: int
    taken: int = 0


_account: ContextVar[Account | None] = ContextVar("account", default=None)


@contextmanager
def within(most: int | str | None = None) -> Iterator[None]:
    """Readings inside share one account.

    Args:
        most: Bytes in all, such as ``2_000_000_000`` or ``2GB``; by default ``$ATTAR_MAX_BYTES``, else three
            quarters of the memory that is free.
    """
    token = _account.set(Account(limit() if most is None else in_bytes(most, "max_bytes")))
    try:
        yield
    finally:
        _account.reset(token)


def limit() -> int:
    """Bytes that a reading may take unless it says otherwise."""
    given = os.environ.get(VARIABLE)
    return in_bytes(given, VARIABLE) if given else available() * 3 // 4


def left() -> int:
    """Bytes that may still be taken."""
    account = _account.get()
    return limit() if account is None else max(0, account.most - account.taken)


def claim(size: int, what: str, *, passing: int = 0) -> None:
    """Take ``size`` bytes of the account; raise before anything is allocated if so many are not left.

    Args:
        size: Bytes that stay in memory.
        what: What needs them; starts the sentence of the error.
        passing: Bytes that are needed beside these, for a moment.
    """
    account = _account.get() or Account(limit())
    if account.taken + size + passing > account.most:
        raise AttarError(
            f"{what} needs {shown(account.taken + size + passing)} of memory where files may take "
            f"{shown(account.most)}: check that the file is what you think, then allow more with --max-bytes or "
            f"{VARIABLE}."
        )
    account.taken += size


def claim_array(shape: Sequence[int], itemsize: int, what: str) -> None:
    """Take the bytes of an array whose header says this shape and size of an item."""
    if len(shape) > MOST_DIMENSIONS or any(size < 0 for size in shape):
        raise AttarError(f"{what} has {len(shape)} dimensions: reshape it to at most {MOST_DIMENSIONS}.")
    claim(math.prod(shape) * itemsize, what)


def nested(value: object) -> None:
    """Raise ValueError if lists and tables lie deeper within one another than any of ours."""
    level: list[object] = [value]
    for _ in range(MOST_NESTED):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise ValueError(f"nested more than {MOST_NESTED} times")


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def short(name: str, what: str) -> str:
    """``name`` if it is no longer than a name may be."""
    if len(name) > MOST_CHARACTERS:
        raise AttarError(
            f"{what} has {len(name):,} characters, beginning with {name[:20]!r}: shorten it to at most "
            f"{MOST_CHARACTERS:,}."
        )
    return name


def require_memory(size: int, what: str, remedy: str) -> None:
    """Refuse what cannot fit into the free memory, before it is begun.

    Args:
        size: Bytes that it takes at least.
        what: What takes them; starts the sentence of the error.
        remedy: What to do instead; ends it.
    """
    try:
        free = available()
    except OSError:  # too many open files: not known now
        return
    if size > free:
        raise AttarError(f"{what} takes at least {shown(size)} of memory, where {shown(free)} is free: {remedy}.")


def require_disk(size: int, place: Path, what: str, remedy: str) -> None:
    """The same for the disk of a file or folder, which need not exist yet."""
    there = next(folder for folder in (place, *place.absolute().parents) if folder.exists())
    if size > (free := shutil.disk_usage(there).free):
        raise AttarError(f"{what} takes {shown(size)} on disk, where {shown(free)} is free: {remedy}.")


def in_bytes(text: int | str, what: str) -> int:
    """A number of bytes from digits with a unit, such as ``500MB``, or without one."""
    found = SIZE.fullmatch(str(text))
    size = int(float(found[1]) * UNITS[found[2].upper()]) if found else 0
    if size < 1:
        raise AttarError(f"{what} is a number of bytes such as 500MB or 2GB, got {str(text)!r}.")
    return size


def shown(size: int) -> str:
    """Bytes in the largest unit that gives at least one."""
    for unit in "TGM":
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.1f} {unit}B"
    return f"{size:,} bytes"
