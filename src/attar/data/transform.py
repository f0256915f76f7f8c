"""Invertible transforms from stored examples to network inputs, fitted on training data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from attar.core import budget
from attar.core.errors import AttarError, unknown

CHUNK = 4096  #: examples processed at once
CACHED = 2**18  #: numbers processed at once where each is alone: they stay in the processor's cache
SCALINGS = ("standard", "zca", "none")  #: transforms that are fitted on training data, by name


class Transform(Protocol):
    """Maps stored examples to network inputs, and back."""

    kind: str

    def apply(self, x: Tensor) -> Tensor: ...

    def invert(self, x: Tensor) -> Tensor: ...

    def tensors(self) -> dict[str, Tensor]:
        """The tensors from which ``restore`` builds it again."""
        ...


@dataclass(frozen=True)
class Identity:
    """Examples as they are stored."""

    kind = "none"

    def apply(self, x: Tensor) -> Tensor:
        return x

    def invert(self, x: Tensor) -> Tensor:
        return x

    def tensors(self) -> dict[str, Tensor]:
        return {}


@dataclass(frozen=True, eq=False)
class Standard:
    r"""Zero mean and unit deviation, per channel for images and per column for features.

    .. math:: z = (x - \mu) / \sigma

    A constant channel has deviation 0; it is divided by 1 instead, and so remains invertible.
    """

    mean: Tensor
    std: Tensor
    kind = "standard"

    @classmethod
    def fit(cls, x: Tensor) -> Standard:
        axes = [d for d in range(x.ndim) if d != 1]
        count = x.numel() / x.shape[1]
        mean = _total(in_cache(x), lambda chunk: chunk.sum(axes)) / count
        std = (_total(in_cache(x), lambda chunk: (chunk - _channels(mean, chunk)).square().sum(axes)) / count).sqrt()
        std = torch.where(std > 1e-6 * mean.abs(), std, torch.ones_like(std))
        return cls(mean.to(x.dtype), std.to(x.dtype))

    def apply(self, x: Tensor) -> Tensor:
        return (x - _channels(self.mean, x)) / _channels(self.std, x)

    def invert(self, x: Tensor) -> Tensor:
        return x * _channels(self.std, x) + _channels(self.mean, x)

    def tensors(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "std": self.std}


@dataclass(frozen=True, eq=False)
class ZCA:
    r"""Decorrelate pixels and stay close to the image.

    .. math:: z = U \,\mathrm{diag}(s)\, U^\top (x - \mu), \quad s_i = (\lambda_i + \epsilon)^{-1/2}

    with :math:`U, \lambda` the eigenpairs of the covariance of the flattened examples. Only ``U`` and ``s`` are
    kept, so the inverse costs no second matrix.
    """

    mean: Tensor
    basis: Tensor
    scale: Tensor
    kind = "zca"

    @classmethod
    def fit(cls, x: Tensor, ridge: float = 0.1) -> ZCA:
        """Fit on ``x``; ``ridge`` times the mean variance is added to every eigenvalue."""
        flat = x.flatten(1)
        size = flat.shape[1]
        what = f"The covariance of {size:,} values, for zca, with its eigenvectors"
        budget.require_memory(3 * 8 * size**2, what, "scale by standard, or shrink the examples")  # and a workspace
        chunks = torch.split(flat, CHUNK)
        mean = _total(chunks, lambda chunk: chunk.sum(0)) / len(flat)
        covariance = _total(chunks, lambda chunk: (chunk - mean).T @ (chunk - mean)) / len(flat)
        values, basis = torch.linalg.eigh(covariance)
        scale = (values.clamp_min(0) + ridge * values.mean() + 1e-12).rsqrt()
        return cls(mean.to(x.dtype), basis.to(x.dtype), scale.to(x.dtype))

    def apply(self, x: Tensor) -> Tensor:
        return self._through(x.flatten(1) - self.mean.to(x), self.scale).reshape(x.shape)

    def invert(self, x: Tensor) -> Tensor:
        return (self._through(x.flatten(1), 1 / self.scale) + self.mean.to(x)).reshape(x.shape)

    def _through(self, flat: Tensor, scale: Tensor) -> Tensor:
        basis = self.basis.to(flat)
        return (flat @ basis * scale.to(flat)) @ basis.T

    def tensors(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "basis": self.basis, "scale": self.scale}


@dataclass(frozen=True, eq=False)
class Embedding:
    r"""Tokens to vectors, :math:`z = E_t`, and vectors to the token whose row of E is nearest."""

    table: Tensor  #: (vocabulary, dimension)

    kind = "embedding"

    def apply(self, x: Tensor) -> Tensor:
        """Embeddings ``(..., length, dimension)`` of tokens ``(..., length)``."""
        return self.table.to(x.device)[x]

    def invert(self, x: Tensor) -> Tensor:
        """The nearest token of every embedding."""
        flat, table = x.flatten(0, -2), self.table.to(x)
        nearest = [torch.cdist(part, table).argmin(1) for part in flat.split(CHUNK)]
        return torch.cat(nearest).reshape(x.shape[:-1])

    def tensors(self) -> dict[str, Tensor]:
        return {"table": self.table}


def fit(kind: str, x: Tensor) -> Transform:
    """Fit the scaling of this name (``standard``, ``zca`` or ``none``) on ``x``."""
    if kind not in SCALINGS:
        raise unknown("scaling", kind, SCALINGS)
    if kind == "none":
        return Identity()
    return Standard.fit(x) if kind == "standard" else ZCA.fit(x)


def restore(kind: str, tensors: Mapping[str, Tensor]) -> Transform:
    """Build a transform from what ``tensors()`` returned."""
    kinds = {"none": Identity, "standard": Standard, "zca": ZCA, "embedding": Embedding}
    if kind not in kinds:
        raise unknown("transform", kind, kinds)
    try:
        return kinds[kind](**tensors)  # type: ignore[no-any-return]
    except TypeError as error:
        raise AttarError(f"The {kind} transform in this file is incomplete: write the file again.") from error


def same(a: Transform, b: Transform) -> bool:
    """Whether two transforms do the same to every example."""
    ours, theirs = a.tensors(), b.tensors()
    return a.kind == b.kind and all(torch.equal(ours[name], theirs[name].to(ours[name])) for name in ours)


def in_cache(x: Tensor) -> Sequence[Tensor]:
    """All examples, so many at a time that what is computed from them need not leave the processor's cache."""
    return torch.split(x, max(1, CACHED // max(1, x[0].numel())))


def _total(chunks: Sequence[Tensor], f: Callable[[Tensor], Tensor]) -> Tensor:
    """Sum ``f`` over chunks in float64, so that no second copy of the set is held."""
    first, *others = chunks
    total = f(first.double())
    for chunk in others:
        total += f(chunk.double())
    return total


def _channels(value: Tensor, x: Tensor) -> Tensor:
    return value.to(x).reshape(1, -1, *[1] * (x.ndim - 2))
