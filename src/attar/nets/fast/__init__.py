"""Optimised code paths, behind one switch: results differ from plain PyTorch only by rounding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_on = ContextVar("fast", default=True)


def enabled() -> bool:
    """Whether the optimised code paths are used; they are, except inside ``plain``."""
    return _on.get()


@contextmanager
def plain() -> Iterator[None]:
    """A context in which only PyTorch's own operations are used, on one network and one whole batch at a time."""
    before = _on.set(False)
    try:
        yield
    finally:
        _on.reset(before)
