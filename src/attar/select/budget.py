"""The number of examples to keep or learn: in all, as a fraction, or per class, and how classes share it."""

from __future__ import annotations

import warnings
from math import isfinite

import torch
from torch import Tensor

from attar.core.errors import AttarError, unknown, whole
from attar.data import Data

BALANCED, PROPORTIONAL, MINIMUM = "balanced", "proportional", "minimum"
BUDGETS = (BALANCED, PROPORTIONAL, MINIMUM)  #: how classes share a number of examples
LARGEST = 10**9  #: of a minimum
SKEW = 2  #: how many times as many examples the largest class has as the smallest, for a warning


class SkewWarning(UserWarning):
    """Equally many examples are kept of classes that are not equally frequent."""


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


def per_class_of(data: Data, per_class: int | None, fraction: float | None) -> int:
    """The examples per class, from one of the two ways to say it."""
    if (per_class is None) == (fraction is None):
        raise AttarError("Give the size of the coreset either as per_class or as fraction.")
    if fraction is not None:
        return max(1, round(total(len(data), fraction=fraction) / data.classes))
    assert per_class is not None
    return whole("per_class", per_class, 1)


def divide(counts: Tensor, size: int, budget: str) -> list[int]:
    """Divide ``size`` examples among classes with ``counts`` examples.

    Args:
        counts: Examples per class, ``(classes,)``.
        size: Examples in all.
        budget: ``balanced`` (as equally as possible), ``proportional`` (to the counts, and at least one each) or
            ``minimum`` (in proportion too, but at least half of an equal share each; ``minimum=5``: at least five).
    """
    kind, _, least = known(budget).partition("=")
    if kind != MINIMUM:
        return share(counts, size, balanced=kind == BALANCED)
    return share(counts, size, balanced=False, least=int(least) if least else max(1, size // len(counts) // 2))


def sizes(data: Data, per_class: int, budget: str) -> list[int]:
    """The examples of each class, ``per_class`` on average, in the shares of a budget (see ``reduce``)."""
    if known(budget) == BALANCED:
        return [per_class] * data.classes
    counts = data.hard.bincount(minlength=data.classes)
    return divide(counts, min(per_class * data.classes, len(data)), budget)


def known(budget: str) -> str:
    """The budget if it is one."""
    kind, mark, least = budget.partition("=")
    if kind not in BUDGETS or (mark and kind != MINIMUM):
        raise unknown("budget", budget, (*BUDGETS, f"{MINIMUM}=5"))
    if mark and not (least.isascii() and least.isdigit() and 1 <= int(least) <= LARGEST):
        raise AttarError(f"A minimum is a whole number of examples per class, such as {MINIMUM}=5; got {budget!r}.")
    return budget


def asked(balanced: bool | None, budget: str | None, per_class: int | None) -> str | None:
    """The budget of a selection; None if it does not look at classes.

    Args:
        balanced: Another way to say balanced or proportional.
        budget: The budget by name.
        per_class: Picks per class, which are balanced unless the budget is another.
    """
    if balanced is not None:
        if budget is not None:
            raise AttarError("balanced and budget say the same: give one of them.")
        if per_class is not None:
            raise AttarError("Give the budget as one of size, fraction and per_class, which needs no balanced.")
        return BALANCED if balanced else PROPORTIONAL
    if budget is not None:
        return known(budget)
    return None if per_class is None else BALANCED


def share(counts: Tensor, size: int, *, balanced: bool = True, least: int = 1) -> list[int]:
    """Divide ``size`` picks among classes with ``counts`` examples.

    Args:
        counts: Examples per class, ``(classes,)``.
        size: Picks in all.
        balanced: Divide as equally as possible, else in proportion to the counts.
        least: What every class gets at least, or all of its examples if it has fewer.
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
    given = counts.cpu().clamp_max(least)
    if int(given.sum()) > size:
        raise AttarError(
            f"At least {least} of each of {len(have)} classes are {int(given.sum())} examples, but {size} were asked "
            "for: ask for more, or for a smaller minimum."
        )
    while int(given.sum()) < size:  # to the class farthest below its share; the first in a tie
        behind = (wish / wish.sum() * size - given).masked_fill(given >= counts.cpu(), -torch.inf)
        given[behind.argmax()] += 1
    return [int(k) for k in given]


def skew(counts: Tensor, budget: str) -> str:
    """What a user should know whose budget is balanced, but whose classes are not; empty if all is well.

    Args:
        counts: Examples per class, ``(classes,)``.
        budget: How classes share the examples.
    """
    least, most = int(counts.min()), int(counts.max())
    if budget != BALANCED or most < SKEW * least:
        return ""
    return (
        f"Classes have {least:,} to {most:,} examples, and equally many of each are kept, so their frequencies are "
        "lost: the budget proportional keeps them, and minimum does in part (--budget)."
    )


def warn_if_skewed(counts: Tensor, budget: str, up: int = 1) -> None:
    """Warn of what ``skew`` says, from the place where the caller was called, or so many calls further up."""
    if said := skew(counts, budget):
        warnings.warn(said, SkewWarning, stacklevel=2 + up)
