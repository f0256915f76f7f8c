"""Statistics over seeds: t-intervals, paired differences in words, and rank correlation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import atan, cos, isnan, nan, pi, sin, sqrt
from statistics import mean, stdev
from typing import Literal, NamedTuple

from attar.core.errors import AttarError

SPREAD = "± is half the width of the 95 % t-interval"  #: what ± means in every table, chart and page
FEWEST = 5  #: seeds that an order in words needs

Order = Literal["above", "below", "not distinguishable", "too few seeds"]


class Paired(NamedTuple):
    """The mean difference of two scores over the seeds that both have, and half the width of its 95 % t-interval.

    Comparisons in words come from here alone, so that they say no more than the interval does.
    """

    difference: float
    half: float | None  #: None for a single seed
    seeds: int

    @staticmethod
    def of(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Paired | None:
        """Both scores by seed; None if they have no seed in common."""
        gaps = [value - theirs[seed] for seed, value in ours.items() if seed in theirs]
        return Paired(*t_interval(gaps), len(gaps)) if gaps else None

    @property
    def order(self) -> Order:
        """Where our score lies: only an interval of five seeds or more without zero gives an order."""
        if self.seeds < FEWEST or self.half is None:
            return "too few seeds"
        if abs(self.difference) <= self.half:
            return "not distinguishable"
        return "above" if self.difference > 0 else "below"

    def __str__(self) -> str:
        """The order and the difference, for scores in percent: ``above, by 2.1 ± 0.8 points``."""
        if self.order in ("above", "below"):
            return f"{self.order}, by {with_half(abs(self.difference), self.half, '.1f')} points"
        seeds = f" over {self.seeds} seed{'s' if self.seeds > 1 else ''}" if self.order == "too few seeds" else ""
        return f"{self.order} (difference {with_half(self.difference, self.half, '+.1f')} points{seeds})"


def with_half(centre: float, half: float | None, spec: str) -> str:
    """``mean ± half width``, formatted by ``spec``; the mean alone if there is no interval."""
    return format(centre, spec) if half is None else f"{centre:{spec}} ± {half:{spec.lstrip('+')}}"


def over_seeds(values: Sequence[float], spec: str) -> str:
    """Mean ± half the width of its 95 % t-interval, formatted by ``spec``; the mean alone for a single value."""
    return with_half(*t_interval(values), spec)


def half_width(error: float, count: int) -> float | None:
    """Half the width of the 95 % t-interval of a mean of ``count`` values with this standard error."""
    return t_quantile(count - 1) * error if count > 1 else None


def t_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float | None]:
    r"""Mean and half width of its confidence interval, :math:`t_{n-1} s / \sqrt n`; None for a single value.

    Args:
        values: Independent values, one per seed.
        confidence: Probability that the interval holds the mean, if values are normal.
    """
    if len(values) < 2:
        return mean(values), None
    return mean(values), t_quantile(len(values) - 1, confidence) * stdev(values) / sqrt(len(values))


def t_quantile(freedom: int, confidence: float = 0.95) -> float:
    """The t with P(|T| < t) = ``confidence`` for Student's distribution with ``freedom`` degrees of freedom."""
    if freedom < 1 or not 0 < confidence < 1:
        raise AttarError(f"A t-interval needs two values and a confidence below 1, got {freedom + 1} and {confidence}.")
    low, high = 0.0, 1.0
    while _inside(high, freedom) < confidence:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, freedom) < confidence else (low, middle)
    return (low + high) / 2


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's rank correlation; equal values share their mean rank. NaN if one side is constant.

    Args:
        a: One value per item.
        b: Another one per item, in the same order.
    """
    if len(a) != len(b) or len(a) < 2:
        raise AttarError(f"A rank correlation needs as many values on both sides, at least 2: got {len(a)}, {len(b)}.")
    first, second = _ranks(a), _ranks(b)
    centre = (len(a) + 1) / 2
    product = sum((x - centre) * (y - centre) for x, y in zip(first, second, strict=True))
    spread = sqrt(sum((x - centre) ** 2 for x in first) * sum((y - centre) ** 2 for y in second))
    return product / spread if spread else nan


def known(values: Sequence[float]) -> list[float]:
    """The values that are not NaN."""
    return [value for value in values if not isnan(value)]


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(ordered, 1)))}
    return [first[value] + (ordered.count(value) - 1) / 2 for value in values]


def _inside(t: float, freedom: int) -> float:
    """P(|T| < t), in closed form (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term, total = (cos(angle), 0.0) if odd else (1.0, 0.0)
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= k / (k + 1) * cos(angle) ** 2
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
