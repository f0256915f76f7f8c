"""Selection by a score per example, and networks early in training, from which some scores come."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from attar.select.contract import Selection
from attar.select.view import View


def highest(scores: Tensor, size: int, gen: Generator | None = None) -> Selection:
    """The examples of highest score, best first; ties go to the lowest index, or are broken at random with ``gen``."""
    places = torch.arange(len(scores), device=scores.device)
    if gen is not None:
        places = torch.randperm(len(scores), generator=gen, device=gen.device).to(scores.device)
    order = places[scores[places].argsort(descending=True, stable=True)[:size]]
    return Selection(order, scores[order].float())


def early(view: View, networks: int, epochs: float) -> Iterator[View]:
    """The examples under several networks, each after so many passes through the data; at least one step."""
    batch = min(view.training.batch, len(view))
    return view.early(networks, max(1, round(epochs * len(view) / batch)))
