"""Principal components of examples, and nearest neighbours among them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Generator, Tensor

ROUNDS = 8  #: of the subspace iteration
CHUNK = 1024  #: rows whose neighbours are sought at once
SPARE = 10  #: directions beyond those asked for, so that these converge


class Principal(NamedTuple):
    """The directions along which examples vary most."""

    mean: Tensor  #: (d,)
    axes: Tensor  #: (d, k), orthonormal
    shares: Tensor  #: (k,) of the variance

    def __call__(self, x: Tensor) -> Tensor:
        """The coordinates ``(n, k)`` of examples ``(n, d)``."""
        return (x - self.mean) @ self.axes


def principal(x: Tensor, count: int, gen: Generator) -> Principal:
    r"""The first ``count`` principal axes of ``x`` ``(n, d)``, by subspace iteration.

    .. math:: Q \leftarrow \mathrm{qr}(X^\top X Q), \quad
        Q^\top X^\top X Q = U \Lambda U^\top, \quad A = Q U

    with X centred. Signs are such that the largest part of every axis is positive.
    """
    mean = x.mean(0)
    centred = x - mean
    width = min(count + SPARE, *x.shape)
    basis = torch.linalg.qr(torch.randn(x.shape[1], width, generator=gen).to(x)).Q
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(centred.T @ (centred @ basis)).Q
    inside = centred @ basis
    values, turn = torch.linalg.eigh(inside.T @ inside)
    kept = min(count, width)
    axes = (basis @ turn).flip(1)[:, :kept]
    largest = axes.gather(0, axes.abs().argmax(0)[None])
    total = centred.square().sum().clamp_min(1e-12)
    return Principal(mean, axes * torch.where(largest < 0, -1.0, 1.0), values.flip(0)[:kept].clamp_min(0) / total)


def nearest(ours: Tensor, theirs: Tensor, count: int, own: bool = False) -> Tensor:
    """Positions ``(n, count)`` in ``theirs`` of the nearest to every row of ``ours``.

    With ``own`` both are the same rows, and none is its own neighbour.
    """
    most, found = min(count, len(theirs) - own), []
    for start in range(0, len(ours), CHUNK):
        gaps = torch.cdist(ours[start : start + CHUNK], theirs)
        if own:
            gaps.diagonal(start).fill_(torch.inf)
        found.append(gaps.topk(most, largest=False).indices)
    return torch.cat(found)
