"""Several networks of which this process computes some only, because workers share them out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_mine: ContextVar[tuple[slice, int] | None] = ContextVar("mine", default=None)


@contextmanager
def only(rows: slice, count: int) -> Iterator[None]:
    """A context in which losses and gradients of ``count`` vectors are computed for some rows, and zero for others.

    Everything else, random numbers above all, is as if all were computed, so these rows have the same bits.
    """
    before = _mine.set((rows, count))
    try:
        yield
    finally:
        _mine.reset(before)


def mine(count: int) -> slice:
    """The rows of so many vectors that are computed here: all outside of ``only``."""
    found = _mine.get()
    return found[0] if found is not None and found[1] == count else slice(0, count)
