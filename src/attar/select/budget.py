"""The number of examples to pick: in all, as a fraction, or per class."""

from __future__ import annotations

from math import isfinite

import torch
from torch import Tensor

from attar.core.errors import AttarError

SKEW = 2  #: how many times as many examples the largest class has as the smallest, for a note


def total(n: int, size: int | None = None, fraction: float | None = None) -> int:
    """The number of picks, from a size or from a fraction of ``n``."""
    if (size is None) == (fraction is None):
        raise AttarError("Give the budget as one of size, fraction and per_class.")
    if fraction is not None:
        if not isfinite(fraction) or not 0 < fraction <= 1:
            raise AttarError(f"fraction must lie between 0 and 1, got {fraction}.")
        size = max(1, round(fraction * n))
    assert size is not None
    if not 1 <= size <= n:
        raise AttarError(f"There are {n} examples, but {size} were asked for: ask for 1 to {n}.")
    return size


def share(counts: Tensor, size: int, *, balanced: bool = True) -> list[int]:
    """Divide ``size`` picks among classes with ``counts`` examples; every class gets at least one.

    Args:
        counts: Examples per class, ``(classes,)``.
        size: Picks in all.
        balanced: Divide as equally as possible, else in proportion to the counts.
    """
    have = counts.tolist()
    if 0 in have:
        raise AttarError(f"Class {have.index(0)} has no examples: leave it out of the labels.")
    if not len(have) <= size <= sum(have):
        raise AttarError(
            f"{size} picks cannot be divided among {len(have)} classes with {sum(have)} examples: "
            f"ask for {len(have)} to {sum(have)}."
        )
    wish = torch.ones(len(have)) if balanced else counts.double()
    given = torch.ones(len(have), dtype=torch.int64)
    while int(given.sum()) < size:  # to the class farthest below its share; the first in a tie
        behind = (wish / wish.sum() * size - given).masked_fill(given >= counts.cpu(), -torch.inf)
        given[behind.argmax()] += 1
    return [int(k) for k in given]


def skew_note(counts: Tensor) -> str | None:
    """What a user should know who gets equally many examples of classes with ``counts`` examples; None if all is well.

    Args:
        counts: Examples per class, ``(classes,)``.
    """
    least, most = int(counts.min()), int(counts.max())
    if most < SKEW * least:
        return None
    return (
        f"note: classes have {least:,} to {most:,} examples, and equally many of each are kept, so their frequencies "
        "are lost; `attar select --size N --no-balanced` keeps them"
    )
