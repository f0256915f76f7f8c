"""A mean over runs with its standard error."""

from __future__ import annotations

from typing import NamedTuple

from attar.assess.metrics import mean_and_error


class Estimate(NamedTuple):
    """A mean and its standard error; the error of a single run is None."""

    mean: float
    error: float | None

    @classmethod
    def of(cls, values: list[float]) -> Estimate:
        mean, error = mean_and_error(values)
        return cls(mean, error if len(values) > 1 else None)

    @property
    def low(self) -> float:
        return self.mean - (self.error or 0)

    @property
    def high(self) -> float:
        return self.mean + (self.error or 0)

    def __format__(self, spec: str) -> str:
        """``mean ± error`` on one line, each formatted by ``spec``."""
        mean = format(self.mean, spec)
        return mean if self.error is None else f"{mean}\u00a0±\u00a0{format(self.error, spec)}"
