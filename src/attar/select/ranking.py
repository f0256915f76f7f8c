"""Selection by a score per example."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from attar.select.contract import Selection


def highest(scores: Tensor, size: int, gen: Generator | None = None) -> Selection:
    """The examples of highest score, best first; ties go to the lowest index, or are broken at random with ``gen``."""
    places = torch.arange(len(scores), device=scores.device)
    if gen is not None:
        places = torch.randperm(len(scores), generator=gen, device=gen.device).to(scores.device)
    order = places[scores[places].argsort(descending=True, stable=True)[:size]]
    return Selection(order, scores[order].float())
