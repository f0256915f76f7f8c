"""What one example is and what a label is: the explicit problem that data, networks and files share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.data.transform import Identity, Transform, restore


class Element(Protocol):
    """What one example is: ``Image``, ``Vector`` or ``Tokens``."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one stored example."""
        ...

    def fits(self, x: Tensor) -> bool:
        """Whether ``x`` is a batch of such examples, stored or learnt."""
        ...

    def random(self, n: int, gen: Generator) -> Tensor:
        """``n`` random examples of growing size, to try a network with."""
        ...


class _Numbers:
    """Examples that are arrays of floats."""

    shape: tuple[int, ...]

    def fits(self, x: Tensor) -> bool:
        return x.is_floating_point() and tuple(x.shape[1:]) == self.shape

    def random(self, n: int, gen: Generator) -> Tensor:
        sizes = 4.0 ** torch.arange(n).view(-1, *[1] * len(self.shape))
        return sizes * torch.randn(n, *self.shape, generator=gen)


@dataclass(frozen=True)
class Image(_Numbers):
    """Pixels: every example has the same number of channels and the same size."""

    channels: int
    height: int
    width: int

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.channels, self.height, self.width


@dataclass(frozen=True)
class Vector(_Numbers):
    """Numbers in named columns."""

    columns: tuple[str, ...]

    @staticmethod
    def of(size: int) -> Vector:
        """Columns without names of their own: x0, x1, ..."""
        return Vector(tuple(f"x{k}" for k in range(size)))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (len(self.columns),)


@dataclass(frozen=True)
class Tokens:
    """A sequence of words, padded to one length; learnt examples are embeddings ``(n, length, dimension)``.

    Args:
        length: Tokens in an example.
        vocabulary: The words by token; token 0 pads.
    """

    length: int
    vocabulary: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.length,)

    def fits(self, x: Tensor) -> bool:
        known = x.ndim == 3 if x.is_floating_point() else x.ndim == 2
        return known and x.shape[1] == self.length

    def random(self, n: int, gen: Generator) -> Tensor:
        return torch.randint(len(self.vocabulary), (n, self.length), generator=gen)

    def text(self, tokens: Sequence[int]) -> str:
        """The words of one example, without the padding."""
        return " ".join(self.vocabulary[token] for token in tokens if token)


@dataclass(frozen=True)
class Classes:
    """The names of the classes, in the order of the labels."""

    names: tuple[str, ...] = ()

    @staticmethod
    def of(count: int) -> Classes:
        """Classes without names of their own: 0, 1, ..."""
        return Classes(tuple(map(str, range(count))))

    def __len__(self) -> int:
        return len(self.names)

    def matches(self, other: Classes) -> bool:
        """Whether labels mean the same here and there: the same names, or as many where one side has only numbers."""
        numbered = Classes.of(len(self))
        return self == other or (len(self) == len(other) and numbered in (self, other))

    def union(self, other: Classes) -> Classes:
        """These classes, then those of ``other`` that are not among them."""
        return Classes(tuple(dict.fromkeys(self.names + other.names)))

    def places(self, names: Iterable[str]) -> Tensor:
        """The label that each of these names has here."""
        where = {name: label for label, name in enumerate(self.names)}
        return torch.tensor([where[name] for name in names], dtype=torch.int64)


@dataclass(frozen=True, eq=False)
class Spec:
    """The problem: what an example is, what a label is, and how stored examples became what networks see.

    Args:
        element: ``Image``, ``Vector`` or ``Tokens``.
        target: The classes.
        transform: From stored examples to what networks see, and back.
        name: Of the data set.
    """

    element: Element
    target: Classes
    transform: Transform = Identity()
    name: str = "data"

    @staticmethod
    def of(
        shape: Sequence[int], classes: int | Sequence[str], transform: Transform | None = None, name: str = "data"
    ) -> Spec:
        """The problem of float arrays: feature vectors ``(d,)`` or images ``(channels, height, width)``."""
        target = Classes.of(classes) if isinstance(classes, int) else Classes(tuple(classes))
        return Spec(element_of(shape), target, transform or Identity(), name)

    def reshaped(self, shape: Sequence[int]) -> Spec:
        """The same labels on examples of another shape."""
        return replace(self, element=element_of(shape))

    def dense(self, x: Tensor) -> Tensor:
        """Examples as floats that can be learnt: embeddings of tokens, anything else as it is."""
        return self.transform.apply(x) if isinstance(self.element, Tokens) and not x.is_floating_point() else x

    def stored(self, x: Tensor) -> Tensor:
        """Examples in the units of the original data: pixels in [0, 1], table values, tokens."""
        return x if isinstance(self.element, Tokens) and not x.is_floating_point() else self.transform.invert(x)

    def check(self) -> None:
        """Raise ValueError where the transform is for other examples than the element says."""
        seen = self.transform.apply(self.element.random(1, torch.Generator().manual_seed(0)))
        if not self.element.fits(seen) or not bool(torch.isfinite(seen).all()):
            raise ValueError("the transform is for examples of another shape")

    def pack(self) -> tuple[dict[str, Tensor], str]:
        """Tensors and text for a file's body and header."""
        about = {
            "name": self.name,
            "classes": self.target.names,
            "element": _describe(self.element),
            "transform": self.transform.kind,
        }
        return {f"transform.{name}": tensor for name, tensor in self.transform.tensors().items()}, json.dumps(about)

    @staticmethod
    def unpack(tensors: Mapping[str, Tensor], text: str) -> Spec:
        """What ``pack`` wrote, from a file that may hold other tensors too."""
        about = json.loads(text)
        parts = {name.partition(".")[2]: t for name, t in tensors.items() if name.startswith("transform.")}
        target = Classes(tuple(map(str, about["classes"])))
        return Spec(_element(about["element"]), target, restore(about["transform"], parts), str(about["name"]))


def element_of(shape: Sequence[int]) -> Element:
    """What an example of this shape is, where nobody said: a feature vector or an image."""
    if len(shape) == 1:
        return Vector.of(shape[0])
    if len(shape) == 3:
        return Image(*shape)
    raise AttarError(
        f"Examples of shape {tuple(shape)} are neither feature vectors (d,) nor images (channels, height, width): "
        "reshape them."
    )


def _describe(element: Element) -> dict[str, Any]:
    match element:
        case Image():
            return {"kind": "image", "shape": element.shape}
        case Vector():
            return {"kind": "vector", "columns": element.columns}
        case Tokens():
            return {"kind": "tokens", "length": element.length, "vocabulary": element.vocabulary}
        case _:
            raise AttarError(f"Examples of type {type(element).__name__} cannot be saved: use Image, Vector or Tokens.")


def _element(about: Mapping[str, Any]) -> Element:
    match about["kind"]:
        case "image":
            channels, height, width = map(int, about["shape"])
            return Image(channels, height, width)
        case "vector":
            return Vector(tuple(map(str, about["columns"])))
        case "tokens":
            return Tokens(int(about["length"]), tuple(map(str, about["vocabulary"])))
    raise ValueError(f"examples of kind {about['kind']!r}")
