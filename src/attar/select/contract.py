"""What a selection method is: a rule that picks examples from a view of the data."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Generator, Tensor

from attar.select.view import View


class Selection(NamedTuple):
    """Picks in order, so that a smaller budget is a prefix; ``scores`` say how good each was to its method."""

    indices: Tensor  #: (size,) int64, unique
    scores: Tensor  #: (size,) float
    weights: Tensor | None = None  #: (size,) float, where examples stand for different numbers of others


class Selector(Protocol):
    """A frozen dataclass of hyper-parameters with one method."""

    def select(self, view: View, size: int, gen: Generator) -> Selection: ...
