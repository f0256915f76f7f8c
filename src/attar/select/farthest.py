"""Farthest-first traversal: always pick the example farthest from all picks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attar.select.contract import Selection


def farthest(first: int, n: int, distances: Callable[[int], Tensor], size: int) -> Selection:
    """Pick ``first``, then the example farthest from its nearest pick; ties go to the lowest index.

    Scores are the radii: the largest distance from an example to its nearest pick, after each pick. In a metric space
    they are at most twice the best possible (Gonzalez 1985), for any ``first``.

    Args:
        first: The first pick.
        n: Number of examples.
        distances: From one example to all, ``(n,)``, or any increasing function of them; scores are then values of it.
        size: Number of picks.
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
    left = torch.stack(radii).clamp(min=0).float()  # the last radius is 0 if all are taken
    return Selection(torch.tensor(picks, device=near.device), left)
