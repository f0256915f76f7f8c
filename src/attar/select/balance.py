"""Class balance, as a wrapper around any selection method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator

from attar.core.errors import AttarError
from attar.core.method import Needs
from attar.data.data import require_per_class
from attar.select.contract import Selection, Selector
from attar.select.view import View


@dataclass(frozen=True)
class PerClass(Selector):
    """Select ``size`` examples of every class, class by class."""

    needs: ClassVar[Needs] = Needs(labels=False)  # the wrapped method says what it needs

    selector: Selector

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        require_per_class(view.hard, view.data.spec.target, size)
        return self.share(view, [size] * len(view.data.spec.target), gen)

    def share(self, view: View, sizes: Sequence[int], gen: Generator) -> Selection:
        """Select ``sizes[c]`` examples of each class c (see ``attar.select.budget.share``)."""
        counts = view.hard.bincount(minlength=len(sizes)).tolist()
        for c, (size, count) in enumerate(zip(sizes, counts, strict=True)):
            if not 1 <= size <= count:
                raise AttarError(f"Class {c} has {count} examples, but {size} were asked for: change its share.")
        together = self.selector.of_classes(view, sizes, gen)
        if together is not None:
            return together
        parts = [self._of_class(view, c, size, gen) for c, size in enumerate(sizes)]
        weights = [part.weights for part in parts if part.weights is not None]
        return Selection(
            torch.cat([part.indices for part in parts]),
            torch.cat([part.scores for part in parts]),
            torch.cat(weights) if weights else None,
        )

    def _of_class(self, view: View, c: int, size: int, gen: Generator) -> Selection:
        part = view.of_class(c)
        inner = self.selector.select(part, size, gen)
        return inner._replace(indices=part.indices[inner.indices])
