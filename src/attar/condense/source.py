"""What is learnt: a module whose forward pass gives the synthetic examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import interpolate

from attar.core.errors import AttarError, unknown
from attar.data import Data, Image, Spec
from attar.data.data import soft
from attar.data.noise import normal

#: Fixed classes, learnt class probabilities, or learnt regression targets (any real numbers).
Labels = Literal["hard", "soft", "targets"]
Scalars = Mapping[str, float | Sequence[float]]
SURE = 0.9  #: weight of the one-hot label in an initial soft label; at 1 the gradient would vanish


@dataclass(frozen=True, repr=False)
class Synthetic(Data):
    """Examples being learnt, and the positive numbers learnt with them by name (a step size, a scale)."""

    scalars: Mapping[str, Tensor] = field(default_factory=dict)


class Source(nn.Module):
    """What is learnt: a module whose parameters are learnt and whose forward pass gives the examples."""

    def forward(self) -> Synthetic:
        raise TypeError(f"{type(self).__name__} must define forward")

    def renew(self, step: int) -> None:
        """Draw new random inputs for this step, in a source that has any; nothing else may be random."""

    def extra(self) -> dict[str, Tensor]:
        """Tensors that the coreset keeps beside the examples, such as the parameters of a generator."""
        return {}

    def groups(self) -> dict[str, list[nn.Parameter]]:
        """Parameter groups by name; each group has its own learning rate (``Descent.rate``)."""
        return {"examples": list(self.parameters())}


class Pixels(Source):
    """Every pixel (or feature) of every example is a parameter.

    Args:
        data: The examples to start from.
        labels: ``hard`` labels are fixed; ``soft`` labels are learnt class probabilities, parameterised by logits;
            ``targets`` are learnt regression targets that start one-hot.
        scalars: Positive numbers to learn, or lists of them, as their logs so that they stay positive.
        pixels: Whether the examples are learnt; otherwise they are fixed.
    """

    x: Tensor
    y: Tensor

    def __init__(
        self, data: Data, labels: Labels = "hard", scalars: Scalars | None = None, pixels: bool = True
    ) -> None:
        super().__init__()
        self._keep("x", data.spec.dense(data.x).detach(), pixels)
        self.soft = labels == "soft"
        self._keep("y", _parameters(data, labels), labels != "hard")
        logs = {name: torch.tensor(value, dtype=torch.float64).log().float() for name, value in (scalars or {}).items()}
        self.logs = nn.ParameterDict(logs)
        self.spec: Spec = data.spec

    def forward(self) -> Synthetic:
        return Synthetic(self.x, self._labels(), spec=self.spec, scalars=self._scalars())

    def groups(self) -> dict[str, list[nn.Parameter]]:
        learnt = {"examples": [self.x], "labels": [self.y], "scalars": list(self.logs.values())}
        found = {name: [p for p in parts if isinstance(p, nn.Parameter)] for name, parts in learnt.items()}
        return {name: parts for name, parts in found.items() if parts}

    def _labels(self) -> Tensor:
        return self.y.softmax(1) if self.soft else self.y

    def _scalars(self) -> dict[str, Tensor]:
        return {name: value.exp() for name, value in self.logs.items()}

    def _keep(self, name: str, value: Tensor, learnt: bool) -> None:
        if learnt:
            self.register_parameter(name, nn.Parameter(value.clone()))
        else:
            self.register_buffer(name, value.clone())


class Frozen(Pixels):
    """A random share of every example's pixels is noise and is never updated; other arguments as for ``Pixels``."""

    frozen: Tensor

    def __init__(
        self, data: Data, labels: Labels = "hard", pixels: bool = True, *, share: float, gen: Generator
    ) -> None:
        flat = data.x.flatten(1)
        rank = torch.rand(flat.shape, generator=gen, device=gen.device).argsort(1).argsort(1).to(flat.device)
        frozen = (rank < round(share * flat.shape[1])).view_as(data.x)
        super().__init__(data.map(lambda x: torch.where(frozen, normal(x, gen), x)), labels, pixels=pixels)
        self.register_buffer("frozen", frozen)

    def forward(self) -> Synthetic:
        made = super().forward()
        return Synthetic(
            torch.where(self.frozen, made.x.detach(), made.x), made.y, spec=made.spec, scalars=made.scalars
        )


class Mosaic(Pixels):
    """Every stored image holds factor² small images, each of which is upsampled to full size (multi-formation).

    Kim et al., Dataset Condensation via Efficient Synthetic-Data Parameterization, ICML 2022. Other arguments as for
    ``Pixels``, with factor² examples for every image that is stored.
    """

    def __init__(self, data: Data, labels: Labels = "hard", *, factor: int) -> None:
        if not isinstance(data.spec.element, Image) or any(side % factor for side in data.shape[1:]):
            raise AttarError(
                f"Multi-formation needs images whose sides {factor} divides, got {data.shape}: set factor to 1."
            )
        super().__init__(data, labels)
        self.factor = factor
        small = interpolate(data.x, scale_factor=1 / factor, mode="area")
        tiles = small.unflatten(0, (-1, factor, factor)).permute(0, 3, 1, 4, 2, 5)
        del self.x
        self._keep("x", tiles.reshape(-1, *data.shape), learnt=True)

    def forward(self) -> Synthetic:
        n, channels, height, width = self.x.shape
        f = self.factor
        tiles = self.x.reshape(n, channels, f, height // f, f, width // f).permute(0, 2, 4, 1, 3, 5)
        small = tiles.reshape(n * f * f, channels, height // f, width // f)
        x = interpolate(small, size=(height, width), mode="bilinear", align_corners=False)
        return Synthetic(x, self._labels(), spec=self.spec, scalars=self._scalars())


def start(data: Data, sizes: Sequence[int], init: str, gen: Generator) -> Data:
    """The first ``sizes[c]`` synthetic examples of class c: ``real`` ones, ``noise`` with their labels, or ``mean``.

    Each mean is over a different random part of the class.
    """
    real = data.sample_per_class(sizes, gen).dense()
    if init == "noise":
        return real.map(lambda x: normal(x, gen))
    if init == "mean":
        parts = [part for c in range(data.classes) for part in _parts(data, c, sizes[c], gen)]
        return real.map(lambda _: torch.stack([data.spec.dense(data.x[part]).mean(0) for part in parts]))
    return real


def borrowed(base: Data, data: Data, count: int, gen: Generator) -> Data:
    """Random examples of another data set as a start for the labels of this one, which begin uniform.

    Args:
        base: Where examples come from; its classes do not matter.
        data: Whose classes the labels are of, and whose transform the examples get.
        count: How many.
        gen: Draws them.
    """
    if base.shape != data.shape:
        raise AttarError(f"Base examples have shape {base.shape}, the data {data.shape}: choose a base of this shape.")
    if len(base) < count:
        raise AttarError(f"The base has {len(base)} examples, and {count} are asked for: choose a larger base.")
    x = base.sample(count, gen).transformed(data.spec.transform).x
    return Data(x, torch.full((count, data.classes), 1 / data.classes, device=x.device), spec=data.spec)


def _parameters(data: Data, labels: Labels) -> Tensor:
    """The tensor that parameterises the labels."""
    if labels not in get_args(Labels):
        raise unknown("kind of labels", labels, get_args(Labels))
    if labels == "hard":
        return data.y
    certain = soft(data.y, data.classes)
    return certain if labels == "targets" else (SURE * certain + (1 - SURE) / data.classes).log()


def _parts(data: Data, c: int, parts: int, gen: Generator) -> tuple[Tensor, ...]:
    members = (data.hard == c).nonzero().flatten()
    shuffled = members[torch.randperm(len(members), generator=gen, device=gen.device).to(members.device)]
    return shuffled.tensor_split(parts)
