"""Vectors that are outer products, one per example, kept as their factors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Outer:
    r"""The vectors :math:`g_i = u_i \otimes [v_i, 1] \in R^{C(h+1)}`, kept as their two factors.

    Gradients of a cross-entropy with respect to a linear last layer have this form, with
    :math:`u = \mathrm{softmax} - \mathrm{onehot}` and the layer's input :math:`v = h`; the diagonals of its Hessians
    too, with :math:`u = p (1 - p)` and :math:`v = h^2`. So

    .. math:: \langle g_i, g_j \rangle = \langle u_i, u_j \rangle (\langle v_i, v_j \rangle + 1)

    and no matrix with :math:`n \times C(h+1)` numbers is ever needed.

    Args:
        left: The factors u, ``(n, C)``.
        right: The factors v, ``(n, h)``.
        bias: Whether a 1 is appended to every v; not for a last layer without a bias.
    """

    left: Tensor
    right: Tensor
    bias: bool = True

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, index: Tensor) -> Outer:
        return Outer(self.left[index], self.right[index], self.bias)

    def since(self, start: int) -> Outer:
        """The vectors from position ``start`` on, without a copy."""
        return Outer(self.left[start:], self.right[start:], self.bias)

    def double(self) -> Outer:
        """The same in float64."""
        return Outer(self.left.double(), self.right.double(), self.bias)

    def slab(self, c: int) -> Tensor:
        """The coordinates that belong to one entry of u, ``(n, h + 1)``, or ``(n, h)`` without bias."""
        own = self.left[:, c, None]
        return torch.cat([own * self.right, own], 1) if self.bias else own * self.right

    def gram(self, other: Outer) -> Tensor:
        """Inner products with every vector of another set, ``(n, m)``."""
        return (self.left @ other.left.T) * (self.right @ other.right.T + float(self.bias))

    @property
    def squares(self) -> Tensor:
        """Squared lengths, ``(n,)``."""
        return self.left.square().sum(1) * (self.right.square().sum(1) + float(self.bias))

    @property
    def norms(self) -> Tensor:
        """Lengths, ``(n,)``."""
        return self.squares.sqrt()

    def sum(self, weights: Tensor | None = None) -> Tensor:
        """The weighted sum as a matrix, ``(C, h + 1)``, or ``(C, h)`` without bias."""
        left = self.left if weights is None else self.left * weights[:, None]
        total = left.T @ self.right
        return torch.cat([total, left.sum(0)[:, None]], 1) if self.bias else total

    def mean(self) -> Tensor:
        """The mean as a matrix, ``(C, h + 1)``, or ``(C, h)`` without bias."""
        return self.sum() / len(self)

    def dot(self, matrix: Tensor) -> Tensor:
        """Inner products with one vector in matrix form, ``(n,)``."""
        h = self.right.shape[1]
        inner = ((self.left @ matrix[:, :h]) * self.right).sum(1)
        return inner + self.left @ matrix[:, h] if self.bias else inner

    def variances(self) -> Tensor:
        """The variance of every coordinate over the examples, in matrix form."""
        squared = Outer(self.left.square(), self.right.square(), self.bias)
        return squared.mean() - self.mean().square()

    def columns(self, index: Tensor) -> Tensor:
        """Some coordinates of every vector, ``(n, len(index))``, by their index in the flattened matrix form."""
        width = self.right.shape[1] + self.bias
        row, column = index // width, index % width
        right = self.right[:, column.clamp(max=self.right.shape[1] - 1)]
        return self.left[:, row] * torch.where(column < self.right.shape[1], right, 1.0)
