"""What is learnt: a module whose forward pass gives the synthetic examples."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Generator, Tensor, nn

from attar.data import Data, Domain


class Source(Protocol):
    """An ``nn.Module`` whose parameters are learnt and whose call gives the examples they stand for."""

    def __call__(self) -> Data: ...


class Pixels(nn.Module):
    """Every pixel (or feature) of every example is a parameter; labels stay as they are."""

    y: Tensor

    def __init__(self, data: Data) -> None:
        super().__init__()
        self.x = nn.Parameter(data.x.detach().clone())
        self.register_buffer("y", data.y.clone())
        self.domain: Domain = data.domain

    def forward(self) -> Data:
        return Data(self.x, self.y, domain=self.domain)


def start(data: Data, per_class: int, init: str, gen: Generator) -> Data:
    """The first synthetic examples: real ones drawn from every class, or noise with their labels."""
    real = data.sample_per_class(per_class, gen)
    if init == "noise":
        return real.map(lambda x: torch.randn(x.shape, generator=gen, device=x.device, dtype=x.dtype))
    return real
