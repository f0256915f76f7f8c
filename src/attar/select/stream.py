"""The base class of methods that see every example once, in order."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Generator, Tensor

from attar.core.method import Needs
from attar.select.contract import Selection, Selector
from attar.select.view import View

BATCH = 1024  #: examples that are looked at together; the result does not depend on it


class Streaming(Selector):
    """A method that goes through the examples once and keeps a small state: a NamedTuple of tensors.

    For tables in parts it needs one reading and no second selection. What it picks depends on the order of rows.
    """

    needs: ClassVar[Needs] = Needs(labels=False, features=True)
    nested: ClassVar[bool] = False

    @property
    def wanted(self) -> int:
        """Random examples that it wants to know beforehand; one at least, for the size of their features."""
        return 1

    def begin(self, references: Tensor, size: int) -> Any:
        """The state before the first example, given some random ones ``(r, h)``."""
        raise TypeError(f"{type(self).__name__} must define begin")

    def feed(self, state: Any, features: Tensor, numbers: Tensor) -> Any:
        """The state after more examples, ``(b, h)``, whose numbers these are."""
        raise TypeError(f"{type(self).__name__} must define feed")

    def finish(self, state: Any) -> Picked:
        """The picks so far."""
        raise TypeError(f"{type(self).__name__} must define finish")

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        features, n = view.features, len(view)
        known = torch.randperm(n, generator=gen, device=gen.device)[: self.wanted].sort().values
        state = self.begin(features[known.to(features.device)], min(size, n))
        numbers = torch.arange(n, device=features.device)
        for rows, places in zip(features.split(BATCH), numbers.split(BATCH), strict=True):
            state = self.feed(state, rows, places)
        found = self.finish(state)
        return Selection(found.numbers, found.scores.float())


class Picked(NamedTuple):
    """The picks of a stream, by number."""

    numbers: Tensor  #: (size,) int64
    scores: Tensor  #: (size,)


def filled(numbers: list[int], spares: list[int], size: int) -> list[int]:
    """Picks, and if they are too few other examples; more picks never harm these objectives."""
    others = [spare for spare in dict.fromkeys(spares) if spare not in set(numbers)]
    return [*numbers, *others[: size - len(numbers)]]
