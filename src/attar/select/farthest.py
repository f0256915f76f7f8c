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
    """
    picks, radii = [first], []
    near = distances(first)
    taken = torch.zeros(n, dtype=torch.bool, device=near.device)
    while len(picks) < min(size, n):
        taken[picks[-1]] = True
        free = near.masked_fill(taken, -torch.inf)
        pick = int(free.argmax())
        radii.append(near.max())
        picks.append(pick)
        near = torch.minimum(near, distances(pick))
    radii.append(near.max())
    return Selection(torch.tensor(picks, device=near.device), torch.stack(radii).float())
