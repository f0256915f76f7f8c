"""Data: examples with their labels and weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import torch
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from attar.core.errors import AttarError
from attar.data.spec import Classes, Spec, Tokens, Vector, element_of
from attar.data.transform import Transform, same

_INFERRED = Spec(Vector(()), Classes())  #: placeholder: the spec is inferred from the arrays


class Dataset(Protocol):
    """Labelled examples that need not be in memory; selection, training and evaluation read from it."""

    @property
    def spec(self) -> Spec:
        """What an example and a label are."""
        ...

    @property
    def labels(self) -> Tensor:
        """The class of every example, ``(n,)`` int64, or ``(n, classes)`` float if labels are soft."""
        ...

    @property
    def weights(self) -> Tensor | None:
        """The weight of every example, ``(n,)``; None if all weigh the same."""
        ...

    @property
    def rows(self) -> Tensor | None:
        """The number of every example in the file or array that the user gave, ``(n,)`` int64."""
        ...

    @property
    def device(self) -> torch.device:
        """Device of the examples that ``take`` returns."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of all examples and labels, computed once."""
        ...

    def __len__(self) -> int: ...

    def take(self, index: Tensor) -> Data:
        """The examples at these positions, in memory."""
        ...

    def chunks(self, size: int) -> Iterator[Data]:
        """All examples in order, ``size`` at a time."""
        ...


@dataclass(frozen=True)
class Data:
    """Examples in memory: a batch or a whole set; ``Data.to`` moves it to another device.

    Args:
        x: Examples, ``(n, ...)``: floats, transformed as ``spec.transform`` says, or int64 tokens.
        y: Labels, ``(n,)`` int64, or ``(n, classes)`` float if they are soft.
        weights: ``(n,)`` float, or None if all examples weigh the same.
        spec: What an example and a label are; by default inferred from the arrays. Slices keep it.
        rows: The number of every example in the file or array that the user gave, ``(n,)`` int64.
        keys: The user's names of all rows of that source, such as file names: example i is ``keys[rows[i]]``.
    """

    x: Tensor
    y: Tensor
    weights: Tensor | None = None
    spec: Spec = _INFERRED
    rows: Tensor | None = None
    keys: Sequence[str] | Mapping[int, str] | None = None

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or (self.weights is not None and len(self.weights) != len(self.x)):
            raise ValueError(
                f"x, y and weights must have the same length, got {len(self.x)} examples and {len(self.y)} labels"
            )
        if self.spec is _INFERRED:
            object.__setattr__(self, "spec", Spec(element_of(self.x.shape[1:]), _classes(self.y)))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Tensor | slice) -> Data:
        weights = None if self.weights is None else self.weights[index]
        rows = None if self.rows is None else self.rows[index]
        return replace(self, x=self.x[index], y=self.y[index], weights=weights, rows=rows)

    def take(self, index: Tensor) -> Data:
        """The examples at the positions ``index``."""
        return self[index]

    def chunks(self, size: int) -> Iterator[Data]:
        """All examples in order, ``size`` at a time, without copies."""
        for start in range(0, len(self), size):
            yield self[start : start + size]

    @property
    def labels(self) -> Tensor:
        """Labels, as in ``y``."""
        return self.y

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.x.device

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one example."""
        return self.spec.element.shape

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.spec.target)

    @property
    def hard(self) -> Tensor:
        """Class index of every example, ``(n,)``; the most likely class if labels are soft."""
        return self.y.argmax(1) if self.y.ndim == 2 else self.y

    @property
    def names(self) -> list[str] | list[int] | None:
        """The user's key or row number of every example; None if unknown."""
        if self.rows is None:
            return None
        numbers: list[int] = self.rows.tolist()
        return numbers if self.keys is None else [self.keys[number] for number in numbers]

    @property
    def relative(self) -> Tensor:
        """Weights ``(n,)`` relative to their mean, so that the mean is one."""
        return torch.ones(len(self), device=self.device) if self.weights is None else self.weights / self.weights.mean()

    def of_class(self, c: int) -> Data:
        """The examples of the class with index ``c``, in order."""
        return self[self.hard == c]

    def sample(self, n: int, gen: Generator) -> Data:
        """``n`` examples drawn by ``gen`` without replacement; all of them, shuffled, if there are fewer."""
        return self[torch.randperm(len(self), generator=gen, device=gen.device)[:n].to(self.device)]

    def sample_per_class(self, n: int | Sequence[int], gen: Generator) -> Data:
        """``n`` examples of every class, or ``n[c]`` of class c, class by class, drawn by ``gen``."""
        sizes = [n] * self.classes if isinstance(n, int) else n
        return self[torch.cat([self._draw(c, size, gen) for c, size in enumerate(sizes)])]

    def sample_class(self, c: int, n: int, gen: Generator, skip: Tensor | None = None) -> Data:
        """``n`` examples of class ``c``, drawn by ``gen`` without a copy of the class; none where ``skip`` is true."""
        return self[self._draw(c, n, gen, skip)]

    def _draw(self, c: int, n: int, gen: Generator, skip: Tensor | None = None) -> Tensor:
        wanted = self.hard == c
        members = (wanted if skip is None else wanted & ~skip).nonzero().flatten()
        return members[torch.randperm(len(members), generator=gen, device=gen.device)[:n].to(members.device)]

    def dense(self) -> Data:
        """The same examples as floats: tokens become their embeddings."""
        return self.map(self.spec.dense)

    def transformed(self, transform: Transform) -> Data:
        """The same examples under another ``transform``."""
        if same(transform, self.spec.transform):
            return self
        if isinstance(self.spec.element, Tokens):
            raise AttarError("These texts were tokenised with another vocabulary: load both sets together.")
        x = transform.apply(self.spec.stored(self.x))
        return replace(self, x=x, spec=replace(self.spec, transform=transform))

    def map(self, f: Callable[[Tensor], Tensor]) -> Data:
        """The same labels over the examples that ``f`` makes of ``x``, which may have another shape."""
        x, spec = f(self.x), self.spec
        return replace(self, x=x, spec=spec if spec.element.fits(x) else spec.reshaped(x.shape[1:]))

    def detach(self) -> Data:
        """The same examples, labels and weights, detached from the autograd graph."""
        weights = None if self.weights is None else self.weights.detach()
        return replace(self, x=self.x.detach(), y=self.y.detach(), weights=weights)

    def to(self, device: torch.device | str) -> Data:
        """A copy on another ``device``."""
        moved = {name: None if part is None else part.to(device) for name, part in self._optional().items()}
        return replace(self, x=self.x.to(device), y=self.y.to(device), weights=moved["weights"], rows=moved["rows"])

    def _optional(self) -> dict[str, Tensor | None]:
        return {"weights": self.weights, "rows": self.rows}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every byte of examples, labels, weights and word embeddings: equal data, equal fingerprint."""
        digest = hashlib.blake2b(digest_size=16)
        tensors = [self.x, self.y] if self.weights is None else [self.x, self.y, self.weights]
        if isinstance(self.spec.element, Tokens):  # tokens alone do not say what a network sees
            tensors += self.spec.transform.tensors().values()
        for tensor in tensors:
            digest.update(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        weights = "" if self.weights is None else ", weighted"
        kind = type(self.spec.element).__name__.lower()
        return f"Data({len(self)} examples of {self.spec.name!r}: {kind} {self.shape}, {self.classes} classes{weights})"


def effective_count(weights: Tensor) -> float:
    r"""Kish's effective sample size of weights, :math:`(\sum_i w_i)^2 / \sum_i w_i^2`: their number if equal."""
    w = weights.double()
    return float(w.sum().square() / w.square().sum())


def count_in_words(weights: Tensor | None) -> str:
    """The effective number of weighted examples; empty without weights."""
    return "" if weights is None else f"weights worth {effective_count(weights):.1f} of {len(weights)} examples"


def soft(y: Tensor, classes: int) -> Tensor:
    """Labels as rows of numbers, ``(n, classes)``: soft ones as they are, hard ones as one-hot."""
    return y if y.ndim == 2 else one_hot(y, classes).float()


def require_per_class(labels: Tensor, target: Classes, n: int | Sequence[int]) -> None:
    """Raise an error that names the first class with fewer than ``n`` examples, or than ``n[c]`` of class c."""
    counts = torch.bincount(labels, minlength=len(target)).tolist()
    sizes = [n] * len(target) if isinstance(n, int) else n
    for name, count, size in zip(target.names, counts, sizes, strict=True):
        if count < size:
            many = f"{size} per class" if isinstance(n, int) else f"{size} of it"
            raise AttarError(f"Class {name!r} has {count} examples, but {many} were asked for: ask for fewer.")


def _classes(y: Tensor) -> Classes:
    """One class per column of soft labels, or up to the largest hard label; none if targets are real numbers."""
    if y.ndim == 2:
        return Classes.of(y.shape[1])
    return Classes.of(int(y.max()) + 1 if len(y) else 0) if not y.is_floating_point() else Classes()
