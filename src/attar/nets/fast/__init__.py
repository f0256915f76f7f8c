"""What exists only for speed, behind one switch: results differ from plain PyTorch by rounding alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_on = ContextVar("fast", default=True)


def enabled() -> bool:
    """Whether the fast ways are taken, as they are unless ``plain`` is entered."""
    return _on.get()


@contextmanager
def plain() -> Iterator[None]:
    """While this is entered, all is done by PyTorch's own operations, one network and one whole batch at a time."""
    before = _on.set(False)
    try:
        yield
    finally:
        _on.reset(before)
