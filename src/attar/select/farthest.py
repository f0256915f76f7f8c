"""Farthest-first traversal: always the example that is farthest from what was taken."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attar.select.contract import Selection


def farthest(first: int, n: int, distances: Callable[[int], Tensor], size: int) -> Selection:
    """Take ``first``, then whatever is farthest from its nearest pick; ties go to the lowest index.

    Scores are the radii left: the distance of the worst-placed example to its nearest pick after each. In a metric
    space they are at most twice the best possible (Gonzalez 1985), whatever ``first`` is.

    Args:
        first: The first pick.
        n: How many examples there are.
        distances: From one example to all, ``(n,)``, or any growing function of them, which the scores are then of.
        size: How many to take.
    """
    picks: list[int] = []
    radii: list[Tensor] = []
    pick, near = first, distances(first)
    while len(picks) < min(size, n):
        if picks:
            near = torch.minimum(near, distances(pick))
        near[pick] = -torch.inf  # taken
        picks.append(pick)
        pick = int(near.argmax())
        radii.append(near[pick])
    left = torch.stack(radii).clamp(min=0).float()  # where all are taken, nothing is left
    return Selection(torch.tensor(picks, device=near.device), left)
