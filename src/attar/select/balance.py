"""Class balance, as a wrapper around any selection method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator

from attar.core.errors import AttarError
from attar.select.contract import Selection, Selector
from attar.select.view import View


@dataclass(frozen=True)
class PerClass(Selector):
    """Select ``size`` examples of every class, class by class."""

    selector: Selector

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        _ = view.y  # so that missing labels are heard of first
        view.data.require_per_class(size)
        return self.share(view, [size] * view.data.classes, gen)

    def share(self, view: View, sizes: Sequence[int], gen: Generator) -> Selection:
        """Select as many of each class as its entry of ``sizes`` says (see ``attar.select.budget.share``)."""
        parts = [self._of_class(view, c, size, gen) for c, size in enumerate(sizes)]
        weights = [part.weights for part in parts if part.weights is not None]
        return Selection(
            torch.cat([part.indices for part in parts]),
            torch.cat([part.scores for part in parts]),
            torch.cat(weights) if weights else None,
        )

    def _of_class(self, view: View, c: int, size: int, gen: Generator) -> Selection:
        part = view.of_class(c)
        if not 1 <= size <= len(part):
            raise AttarError(f"Class {c} has {len(part)} examples and {size} were asked for: change its share.")
        inner = self.selector.select(part, size, gen)
        return inner._replace(indices=part.indices[inner.indices])
