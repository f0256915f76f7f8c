"""Class balance, as a wrapper around any selection method."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator

from attar.select.contract import Selection, Selector
from attar.select.view import View


@dataclass(frozen=True)
class PerClass:
    """Select ``size`` examples of every class, class by class."""

    selector: Selector

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        view.data.require_per_class(size)
        parts = [self._of_class(view, c, size, gen) for c in range(view.data.classes)]
        weights = [part.weights for part in parts if part.weights is not None]
        return Selection(
            torch.cat([part.indices for part in parts]),
            torch.cat([part.scores for part in parts]),
            torch.cat(weights) if weights else None,
        )

    def _of_class(self, view: View, c: int, size: int, gen: Generator) -> Selection:
        members = (view.data.hard == c).nonzero().flatten()
        inner = self.selector.select(view.part(members), size, gen)
        return inner._replace(indices=members[inner.indices])
