"""k-means clustering."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

ROUNDS = 30  #: of Lloyd's algorithm at most; it ends earlier where nothing changes


def centres(x: Tensor, k: int, gen: Generator) -> Tensor:
    r"""Cluster means ``(k, d)`` of rows ``(n, d)``, by Lloyd's algorithm from a k-means++ start.

    Arthur & Vassilvitskii, k-means++: The Advantages of Careful Seeding, SODA 2007. k is at most n.
    """
    found, place = _seeds(x, k, gen), torch.full((len(x),), -1, device=x.device)
    for _ in range(ROUNDS):
        nearest = nearest_of(x, found)
        if torch.equal(nearest, place):
            break
        place = nearest
        sums = torch.zeros_like(found).index_add_(0, place, x)
        counts = torch.bincount(place, minlength=k)[:, None]
        found = torch.where(counts > 0, sums / counts.clamp_min(1), found)  # an empty cluster stays where it is
    return found


def nearest_of(x: Tensor, points: Tensor) -> Tensor:
    """For every row of ``x``, ``(n,)``, which of the points is nearest."""
    parts = [_squares(part, points).argmin(1) for part in x.split(4096)]
    return torch.cat(parts)


def _seeds(x: Tensor, k: int, gen: Generator) -> Tensor:
    """Rows drawn one after the other, in proportion to the squared distance from those before."""
    places = [int(torch.randint(len(x), (), generator=gen, device=gen.device))]
    apart = _squares(x, x[places])[:, 0]
    while len(places) < k:
        apart[places] = 0
        weights = apart if bool(apart.any()) else torch.ones_like(apart).index_fill(0, torch.tensor(places), 0)
        places.append(int(torch.multinomial(weights.to(gen.device), 1, generator=gen)))
        apart = torch.minimum(apart, _squares(x, x[places[-1:]])[:, 0])
    return x[places].clone()


def _squares(a: Tensor, b: Tensor) -> Tensor:
    return (a.square().sum(1)[:, None] - 2 * a @ b.T + b.square().sum(1)).clamp_min(0)
