"""One random stream for every image."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor


class Dice:
    """Draws for a batch of images, each from a generator of its own.

    So what happens to an image depends on its place alone: not on its neighbours, and not on how many are taken at
    once. The streams run on the CPU and give the same numbers whatever device the images are on.
    """

    def __init__(self, like: Tensor, seeds: Tensor) -> None:
        """One stream for every image of ``like``; draws have its dtype and device."""
        self._streams = [Generator().manual_seed(seed) for seed in seeds.tolist()]
        self._like = like

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform numbers, ``(n, *shape)``."""
        return low + (high - low) * self._stack(lambda i, gen: torch.rand(shape, generator=gen))

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, ``(n, *shape)``."""
        return self._stack(lambda i, gen: torch.randn(shape, generator=gen))

    def poisson(self, rates: Tensor) -> Tensor:
        """Counts of these mean values, one for each."""
        local = rates.cpu()
        return self._stack(lambda i, gen: torch.poisson(local[i], generator=gen))

    def _stack(self, draw: Callable[[int, Generator], Tensor]) -> Tensor:
        return torch.stack([draw(i, gen) for i, gen in enumerate(self._streams)]).to(self._like)


def seeds(n: int, gen: Generator) -> Tensor:
    """A seed for each of ``n`` images; the first ones are the same whatever ``n`` is."""
    return torch.randint(2**63 - 1, (n,), generator=gen, device=gen.device).cpu()
