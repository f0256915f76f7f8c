"""Data: examples, labels and weights that travel together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.data.scaling import Identity, Scaling, restore, same


@dataclass(frozen=True)
class Domain:
    """What the numbers of a data set mean: its name, its classes and how its examples were scaled."""

    name: str = "data"
    classes: tuple[str, ...] = ()
    scaling: Scaling = Identity()

    def pack(self) -> tuple[dict[str, Tensor], str]:
        """Tensors and text for a file's body and header."""
        text = json.dumps({"name": self.name, "classes": self.classes, "scaling": self.scaling.kind})
        return {f"scaling.{name}": tensor for name, tensor in self.scaling.tensors().items()}, text

    @staticmethod
    def unpack(tensors: Mapping[str, Tensor], text: str) -> Domain:
        """The domain that ``pack`` wrote, from a file that may hold other tensors too."""
        named = json.loads(text)
        parts = {name.partition(".")[2]: t for name, t in tensors.items() if name.startswith("scaling.")}
        return Domain(str(named["name"]), tuple(map(str, named["classes"])), restore(named["scaling"], parts))


@dataclass(frozen=True)
class Data:
    """A batch or a whole set; the only thing that moves devices is ``Data.to``.

    Args:
        x: Examples, ``(n, ...)`` float, scaled as ``domain.scaling`` says.
        y: Labels, ``(n,)`` int64, or ``(n, classes)`` float where they are soft.
        weights: ``(n,)`` float, or None where every example counts the same.
        domain: Names and scaling; slices keep it.
    """

    x: Tensor
    y: Tensor
    weights: Tensor | None = None
    domain: Domain = Domain()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or (self.weights is not None and len(self.weights) != len(self.x)):
            raise ValueError(f"x, y and weights must have one length, got {len(self.x)} examples, {len(self.y)} labels")

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Tensor | slice) -> Data:
        weights = None if self.weights is None else self.weights[index]
        return replace(self, x=self.x[index], y=self.y[index], weights=weights)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one example."""
        return tuple(self.x.shape[1:])

    @property
    def classes(self) -> int:
        """Number of classes: as the domain names them, else as the labels show."""
        if self.domain.classes:
            return len(self.domain.classes)
        return self.y.shape[1] if self.y.ndim == 2 else int(self.y.max()) + 1

    @property
    def hard(self) -> Tensor:
        """Class index of every example, ``(n,)``; the likeliest class where labels are soft."""
        return self.y.argmax(1) if self.y.ndim == 2 else self.y

    def of_class(self, c: int) -> Data:
        """The examples of one class, in order."""
        return self[self.hard == c]

    def sample(self, n: int, gen: Generator) -> Data:
        """``n`` examples drawn without replacement; all of them, shuffled, where there are fewer."""
        return self[torch.randperm(len(self), generator=gen, device=gen.device)[:n].to(self.x.device)]

    def sample_per_class(self, n: int, gen: Generator) -> Data:
        """``n`` examples of every class, class by class."""
        return self[torch.cat([self._draw(c, n, gen) for c in range(self.classes)])]

    def sample_class(self, c: int, n: int, gen: Generator, skip: Tensor | None = None) -> Data:
        """``n`` examples of one class, without a copy of the whole class; none where the mask ``skip`` is set."""
        return self[self._draw(c, n, gen, skip)]

    def _draw(self, c: int, n: int, gen: Generator, skip: Tensor | None = None) -> Tensor:
        wanted = self.hard == c
        members = (wanted if skip is None else wanted & ~skip).nonzero().flatten()
        return members[torch.randperm(len(members), generator=gen, device=gen.device)[:n].to(members.device)]

    def rescaled(self, scaling: Scaling) -> Data:
        """The same examples under another scaling."""
        if same(scaling, self.domain.scaling):
            return self
        stored = self.domain.scaling.invert(self.x)
        return replace(self, x=scaling.apply(stored), domain=replace(self.domain, scaling=scaling))

    def require_per_class(self, n: int) -> None:
        """Raise an error that names the first class with fewer than ``n`` examples."""
        for c, count in enumerate(torch.bincount(self.hard, minlength=self.classes).tolist()):
            if count < n:
                name = self.domain.classes[c] if self.domain.classes else c
                raise AttarError(f"Class {name!r} has {count} examples and {n} per class were asked: ask for fewer.")

    def map(self, f: Callable[[Tensor], Tensor]) -> Data:
        """The same labels over ``f(x)``."""
        return replace(self, x=f(self.x))

    def to(self, device: torch.device | str) -> Data:
        """A copy on another device."""
        weights = None if self.weights is None else self.weights.to(device)
        return replace(self, x=self.x.to(device), y=self.y.to(device), weights=weights)

    def fingerprint(self) -> str:
        """A hash of every byte of examples, labels and weights: equal data, equal fingerprint."""
        digest = hashlib.blake2b(digest_size=16)
        for tensor in (self.x, self.y) if self.weights is None else (self.x, self.y, self.weights):
            digest.update(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().data)
        return digest.hexdigest()
