"""Distances between examples: of gradients, and of vectors by coordinate."""

from __future__ import annotations

import torch
from torch import Tensor

from attar.select.outer import Outer

CACHED = 256  #: rows converted to float64 at once, to fit into the processor's cache


class GradientDistance:
    r"""Euclidean distances of last-layer gradients, :math:`\|g_i - g_j\|_2`, from factored inner products."""

    def __init__(self, gradients: Outer) -> None:
        self.gradients, self.squares = gradients, gradients.squares

    @property
    def sizes(self) -> Tensor:
        return self.squares.sqrt()

    def rows(self, index: Tensor, since: int = 0) -> Tensor:
        some, rest = self.gradients[index], self.gradients.since(since)
        square = self.squares[index][:, None] + self.squares[since:] - 2 * some.gram(rest)
        return _zero_to_itself(square.clamp_(min=0).sqrt_(), index, since)


class WeighedGradientDistance:
    r"""Euclidean distances with every coordinate multiplied by a scale, :math:`\|s \circ (g_i - g_j)\|_2`.

    Scales do not factor, so inner products are summed class by class:
    :math:`\sum_c u_{ic} u_{jc} \sum_d s_{cd}^2 v_{id} v_{jd}`.
    """

    def __init__(self, gradients: Outer, scale: Tensor) -> None:
        self.gradients, self.squared_scale = gradients, scale.square()
        squared = Outer(gradients.left.square(), gradients.right.square(), gradients.bias)
        self.squares = squared.dot(self.squared_scale)

    @property
    def sizes(self) -> Tensor:
        return self.squares.sqrt()

    def rows(self, index: Tensor, since: int = 0) -> Tensor:
        some, rest = self.gradients[index], self.gradients.since(since)
        square = self.squares[index][:, None] + self.squares[since:]
        for c, scale in enumerate(self.squared_scale):
            square.addmm_(some.slab(c) * scale, rest.slab(c).T, alpha=-2)
        return _zero_to_itself(square.clamp_(min=0).sqrt_(), index, since)


class CityDistance:
    r"""L1 distances, :math:`\sum_k |x_{ik} - x_{jk}|`."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    @property
    def sizes(self) -> Tensor:
        return self.x.abs().sum(1)

    def rows(self, index: Tensor, since: int = 0) -> Tensor:
        return torch.cdist(self.x[index], self.x[since:], p=1)


def centred(features: Tensor, *, columns: bool = False) -> Tensor:
    """Centred features, whose squares have smaller rounding errors.

    Stored column by column, they are read faster in products with a vector.
    """
    parts, shape = features.split(CACHED), features.shape
    out = features.new_empty(shape[::-1]).T if columns else features.new_empty(shape)
    mean = sum((rows.double().sum(0) for rows in parts), features.new_zeros(()).double()) / len(features)
    for rows, into in zip(parts, out.split(CACHED), strict=True):
        into.copy_((rows.double() - mean).to(into.dtype))
    return out


def _zero_to_itself(rows: Tensor, index: Tensor, since: int) -> Tensor:
    """Set the distance of every example to itself to exactly zero."""
    inside = (index >= since).nonzero().flatten()
    rows[inside, index[inside] - since] = 0
    return rows
