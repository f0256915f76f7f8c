"""Statistics over seeds: t-intervals and rank correlation."""

from __future__ import annotations

from collections.abc import Sequence
from math import atan, cos, isnan, nan, pi, sin, sqrt
from statistics import mean, stdev

from attar.core.errors import AttarError


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
