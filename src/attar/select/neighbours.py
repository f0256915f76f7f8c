"""Nearest neighbours of every example: exact for few, approximate for many."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from attar.core.errors import require

EXACT = 4096  #: examples up to which all distances are computed
BLOCK = 512  #: rows of distances that are computed at once
PLAIN = "donot_use_mm_for_euclid_dist"  #: exact for examples that are nearly equal
BREADTH = 128  #: candidates that the search of a graph holds; more find more of the true neighbours


class Neighbours(NamedTuple):
    """The nearest examples of each, itself first."""

    places: Tensor  #: (n, count) int64
    distances: Tensor  #: (n, count), Euclidean, increasing


def neighbours(x: Tensor, count: int, exact: int = EXACT) -> Neighbours:
    """The ``count`` nearest examples of every row of ``x``, with itself.

    Args:
        x: The examples, ``(n, h)``.
        count: Neighbours of each; fewer if there are fewer examples.
        exact: Examples up to which all distances are computed. For more, a graph of neighbours is built by usearch, on
            one thread, so that the result is always the same; it misses some.
    """
    count = min(count, len(x))
    if len(x) <= exact:
        found = [torch.cdist(rows, x, compute_mode=PLAIN).topk(count, largest=False) for rows in x.split(BLOCK)]
        nearest = Neighbours(torch.cat([f.indices for f in found]), torch.cat([f.values for f in found]))
    else:
        nearest = _approximate(x, count)
    return _itself_first(nearest)


def _approximate(x: Tensor, count: int) -> Neighbours:
    usearch: Any = require("usearch.index", "ann")
    vectors = np.ascontiguousarray(x.detach().cpu().numpy(), dtype=np.float32)
    index = usearch.Index(
        ndim=vectors.shape[1],
        metric="l2sq",
        dtype="f32",
        expansion_add=BREADTH,
        expansion_search=max(BREADTH, 2 * count),
    )
    index.add(np.arange(len(vectors)), vectors, threads=1)
    found = index.search(vectors, count, threads=1)
    places = torch.from_numpy(np.asarray(found.keys).astype(np.int64)).reshape(len(vectors), -1)
    squares = torch.from_numpy(np.asarray(found.distances, dtype=np.float32)).reshape(len(vectors), -1)
    return Neighbours(places.to(x.device), squares.clamp(min=0).sqrt().to(x.device))


def _itself_first(found: Neighbours) -> Neighbours:
    """Put every example first among its own neighbours, at distance zero; a search may miss it among duplicates."""
    n = len(found.places)
    own = torch.arange(n, device=found.places.device)[:, None]
    places, distances = found.places.clone(), found.distances.clone()
    here = places == own
    away = here.long().argmax(1, keepdim=True)
    away[~here.any(1)] = places.shape[1] - 1  # the farthest gives way
    for tensor, value in ((places, own), (distances, torch.zeros_like(distances[:, :1]))):
        rest = tensor.gather(1, _without(away, places.shape[1]))
        tensor.copy_(torch.cat([value, rest], 1))
    return Neighbours(places, distances)


def _without(away: Tensor, count: int) -> Tensor:
    """All columns but one of each row, in order."""
    columns = torch.arange(count - 1, device=away.device).expand(len(away), -1)
    return columns + (columns >= away).long()
