"""How many examples to pick: as a number, as a fraction, or of every class."""

from __future__ import annotations

from math import isfinite

import torch
from torch import Tensor

from attar.core.errors import AttarError


def total(n: int, size: int | None = None, fraction: float | None = None) -> int:
    """The number of examples that a size or a fraction of ``n`` means."""
    if (size is None) == (fraction is None):
        raise AttarError("Give the budget once: as size, as fraction or as per_class.")
    if fraction is not None:
        if not isfinite(fraction) or not 0 < fraction <= 1:
            raise AttarError(f"fraction must lie between 0 and 1, got {fraction}.")
        size = max(1, round(fraction * n))
    assert size is not None
    if not 1 <= size <= n:
        raise AttarError(f"There are {n} examples and {size} were asked for: ask for between 1 and {n}.")
    return size


def share(counts: Tensor, size: int, *, balanced: bool = True) -> list[int]:
    """Share ``size`` picks among classes that have ``counts`` examples; every class gets at least one.

    Args:
        counts: Examples of each class, ``(classes,)``.
        size: Picks in all.
        balanced: As equally as the classes allow, else in proportion to their counts.
    """
    have = counts.tolist()
    if 0 in have:
        raise AttarError(f"Class {have.index(0)} has no examples: leave it out of the labels.")
    if not len(have) <= size <= sum(have):
        raise AttarError(
            f"{size} picks cannot be shared among {len(have)} classes with {sum(have)} examples: "
            f"ask for between {len(have)} and {sum(have)}."
        )
    wish = torch.ones(len(have)) if balanced else counts.double()
    given = torch.ones(len(have), dtype=torch.int64)
    while int(given.sum()) < size:  # always to the class that is farthest below its share, the first if several are
        behind = (wish / wish.sum() * size - given).masked_fill(given >= counts.cpu(), -torch.inf)
        given[behind.argmax()] += 1
    return [int(k) for k in given]
