"""What is learnt: a module whose forward pass gives the synthetic examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log
from typing import Protocol

import torch
from torch import Generator, Tensor, nn

from attar.data import Data, Domain
from attar.nets.losses import soft


class Source(Protocol):
    """An ``nn.Module`` whose parameters are learnt and whose call gives the examples they stand for."""

    def __call__(self) -> Data: ...


@dataclass(frozen=True)
class Synthetic(Data):
    """Examples being learnt, and the positive numbers learnt with them by name (a step size, a scale)."""

    scalars: Mapping[str, Tensor] = field(default_factory=dict)


class Pixels(nn.Module):
    """Every pixel (or feature) of every example is a parameter.

    Args:
        data: The examples to start from.
        labels: Whether their labels are learnt too, as rows of numbers that start one-hot.
        scalars: Positive numbers to learn, each as its log so that it stays positive.
    """

    y: Tensor

    def __init__(self, data: Data, labels: bool = False, scalars: Mapping[str, float] | None = None) -> None:
        super().__init__()
        self.x = nn.Parameter(data.x.detach().clone())
        if labels:
            self.y = nn.Parameter(soft(data.y, data.classes).clone())
        else:
            self.register_buffer("y", data.y.clone())
        self.logs = nn.ParameterDict({name: torch.tensor(log(value)) for name, value in (scalars or {}).items()})
        self.domain: Domain = data.domain

    def forward(self) -> Synthetic:
        return Synthetic(self.x, self.y, domain=self.domain, scalars={k: v.exp() for k, v in self.logs.items()})


def start(data: Data, per_class: int, init: str, gen: Generator) -> Data:
    """The first synthetic examples: real ones drawn from every class, or noise with their labels."""
    real = data.sample_per_class(per_class, gen)
    if init == "noise":
        return real.map(lambda x: torch.randn(x.shape, generator=gen, device=x.device, dtype=x.dtype))
    return real
