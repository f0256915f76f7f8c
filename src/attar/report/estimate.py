"""A mean over runs with its 95 % t-interval."""

from __future__ import annotations

from typing import NamedTuple, Self

from attar.assess.statistics import t_interval, with_half


class Estimate(NamedTuple):
    """A mean and half the width of its 95 % t-interval; that of a single run is unknown, None."""

    mean: float
    half: float | None

    @classmethod
    def of(cls, values: list[float]) -> Self:
        return cls(*t_interval(values))

    @property
    def low(self) -> float:
        return self.mean - (self.half or 0)

    @property
    def high(self) -> float:
        return self.mean + (self.half or 0)

    def __format__(self, spec: str) -> str:
        """``mean ± half width`` on one line, each formatted by ``spec``."""
        return with_half(self.mean, self.half, spec).replace(" ", "\u00a0")


class Percent(Estimate):
    """An estimate in percent, whose interval is cut off at 0 and 100 where it is drawn."""

    @property
    def low(self) -> float:
        return max(0.0, super().low)

    @property
    def high(self) -> float:
        return min(100.0, super().high)
