"""The spec of a data set: what an example is and what a label is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from pydantic import TypeAdapter
from torch import Generator, Tensor

from attar.core import budget
from attar.core.errors import AttarError
from attar.core.files import parsed
from attar.data.columns import Column
from attar.data.transform import Embedding, Identity, Transform, restore


class Element(Protocol):
    """What one example is: ``Image``, ``Vector``, ``Table`` or ``Tokens``."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one stored example."""
        ...

    def fits(self, x: Tensor) -> bool:
        """Whether ``x`` is a batch of such examples, stored or learnt."""
        ...

    def random(self, n: int, gen: Generator) -> Tensor:
        """``n`` random examples of growing magnitude, to test a network with."""
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
    """Numbers in named columns: feature vectors."""

    columns: tuple[str, ...]

    @staticmethod
    def of(size: int) -> Vector:
        """Columns with default names: x0, x1, ..."""
        return Vector(tuple(f"x{k}" for k in range(size)))

    def decode(self, x: Tensor) -> dict[str, list[Any]]:
        """Values by column from numbers in the units of the data."""
        return dict(zip(self.columns, x.float().T.tolist(), strict=True))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (len(self.columns),)


@dataclass(frozen=True)
class Table(Vector):
    """The row of a table: ``columns`` names its numbers, and ``fields`` the columns of the user that they come from."""

    fields: tuple[Column, ...] = ()

    @staticmethod
    def of_fields(fields: Sequence[Column]) -> Table:
        """A row of these columns."""
        return Table(tuple(name for field in fields for name in field.names), tuple(fields))

    @property
    def scaled(self) -> Tensor:
        """Which numbers are measured and need a scale, ``(width,)``; the others are 0 or 1."""
        return torch.tensor([scaled for field in self.fields for scaled in field.scaled])

    def decode(self, x: Tensor) -> dict[str, list[Any]]:
        """Valid rows from numbers in the units of the data, stored or learnt, by column.

        A category is one of its levels, a number or date lies within the training range and is whole if all were, and
        None is a missing value.
        """
        parts = x.detach().cpu().double().split([len(field.names) for field in self.fields], dim=1)
        return {field.name: field.decode(part.numpy()) for field, part in zip(self.fields, parts, strict=True)}

    def __str__(self) -> str:
        kinds: dict[str, list[str]] = {}
        for field in self.fields:
            kinds.setdefault(field.kind, []).append(str(field))
        numeric = kinds.pop("numeric", [])
        shown = [f"{len(numeric)} numeric"] if numeric else []
        return "; ".join([*shown, *(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())])


@dataclass(frozen=True)
class Tokens:
    """A sequence of words, padded to one length; learnt examples are embeddings ``(n, length, dimension)``.

    Args:
        length: Tokens per example.
        vocabulary: The words, indexed by token; token 0 is padding.
    """

    length: int
    vocabulary: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.length,)

    def fits(self, x: Tensor) -> bool:
        known = x.ndim == 3 if x.is_floating_point() else x.ndim == 2
        return known and x.shape[1] == self.length

    def knows(self, x: Tensor) -> bool:
        """Whether every token is in the vocabulary; embeddings have no tokens."""
        return x.is_floating_point() or bool(((x >= 0) & (x < len(self.vocabulary))).all())

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
        """Classes with default names: 0, 1, ..."""
        return Classes(tuple(map(str, range(count))))

    def __len__(self) -> int:
        return len(self.names)

    def matches(self, other: Classes) -> bool:
        """Whether labels mean the same: equal names, or as many classes if one side has only numbers."""
        numbered = Classes.of(len(self))
        return self == other or (len(self) == len(other) and numbered in (self, other))

    def union(self, other: Classes) -> Classes:
        """These classes, followed by the new ones of ``other``."""
        return Classes(tuple(dict.fromkeys(self.names + other.names)))

    def places(self, names: Iterable[str]) -> Tensor:
        """The label of each of these names."""
        where = {name: label for label, name in enumerate(self.names)}
        return torch.tensor([where[name] for name in names], dtype=torch.int64)


@dataclass(frozen=True, eq=False)
class Spec:
    """What an example is, what a label is, and the transform from stored examples to network inputs.

    Args:
        element: ``Image``, ``Vector``, ``Table`` or ``Tokens``.
        target: The classes.
        transform: Maps stored examples to network inputs, and back.
        name: Name of the data set.
    """

    element: Element
    target: Classes
    transform: Transform = Identity()
    name: str = "data"

    @staticmethod
    def of(
        shape: Sequence[int], classes: int | Sequence[str], transform: Transform | None = None, name: str = "data"
    ) -> Spec:
        """The spec of float arrays: feature vectors ``(d,)`` or images ``(channels, height, width)``."""
        target = Classes.of(classes) if isinstance(classes, int) else Classes(tuple(classes))
        return Spec(element_of(shape), target, transform or Identity(), name)

    def reshaped(self, shape: Sequence[int]) -> Spec:
        """The same labels on examples of another shape."""
        return replace(self, element=element_of(shape))

    def dense(self, x: Tensor) -> Tensor:
        """Examples as floats that can be learnt: tokens as their embeddings, anything else unchanged."""
        return self.transform.apply(x) if isinstance(self.element, Tokens) and not x.is_floating_point() else x

    def stored(self, x: Tensor) -> Tensor:
        """Examples in the units of the original data: pixels in [0, 1], table values, tokens."""
        return x if isinstance(self.element, Tokens) and not x.is_floating_point() else self.transform.invert(x)

    def check(self) -> None:
        """Raise ValueError if the transform does not fit the element."""
        if isinstance(self.element, Tokens) and isinstance(self.transform, Embedding):
            rows, words = self.transform.table.shape[:1], len(self.element.vocabulary)
            if rows != (words,):
                raise ValueError(f"the table of embeddings has {rows[0] if rows else 0} rows for {words} words")
        seen = self.transform.apply(self.element.random(1, torch.Generator().manual_seed(0)))
        if not self.element.fits(seen) or not bool(torch.isfinite(seen).all()):
            raise ValueError("the transform is for examples of another shape")

    def pack(self) -> tuple[dict[str, Tensor], str]:
        """The tensors and the header text that a file stores."""
        about = {
            "name": self.name,
            "classes": self.target.names,
            "element": _describe(self.element),
            "transform": self.transform.kind,
        }
        return {f"transform.{name}": tensor for name, tensor in self.transform.tensors().items()}, json.dumps(about)

    @staticmethod
    def unpack(tensors: Mapping[str, Tensor], text: str) -> Spec:
        """Restore what ``pack`` returned; ``tensors`` may hold others too."""
        about = parsed(text)
        parts = {name.partition(".")[2]: t for name, t in tensors.items() if name.startswith("transform.")}
        target = Classes(tuple(budget.short(str(name), "The name of a class") for name in about["classes"]))
        return Spec(_element(about["element"]), target, restore(about["transform"], parts), str(about["name"]))


def element_of(shape: Sequence[int]) -> Element:
    """The element of plain arrays of this shape: a feature vector or an image."""
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
        case Table():
            return {"kind": "table", "fields": TypeAdapter(tuple[Column, ...]).dump_python(element.fields)}
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
            return Vector(tuple(budget.short(str(name), "The name of a column") for name in about["columns"]))
        case "table":
            return Table.of_fields(TypeAdapter(tuple[Column, ...]).validate_python(about["fields"]))
        case "tokens":
            return Tokens(int(about["length"]), tuple(map(str, about["vocabulary"])))
    raise ValueError(f"examples of kind {about['kind']!r}")
