"""One random stream per image."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor


class Dice:
    """Random numbers for a batch of images, from one generator per image.

    So the corruption of an image depends only on its index, not on the other images or the batch size. The generators
    run on the CPU, so the numbers do not depend on the device of the images.
    """

    def __init__(self, like: Tensor, seeds: Tensor) -> None:
        """One stream per image of ``like``; numbers have its dtype and device."""
        self._streams = [Generator().manual_seed(seed) for seed in seeds.tolist()]
        self._like = like

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform numbers, ``(n, *shape)``."""
        return low + (high - low) * self._stack(lambda i, gen: torch.rand(shape, generator=gen))

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, ``(n, *shape)``."""
        return self._stack(lambda i, gen: torch.randn(shape, generator=gen))

    def poisson(self, rates: Tensor) -> Tensor:
        """Poisson counts with these means."""
        local = rates.cpu()
        return self._stack(lambda i, gen: torch.poisson(local[i], generator=gen))

    def _stack(self, draw: Callable[[int, Generator], Tensor]) -> Tensor:
        return torch.stack([draw(i, gen) for i, gen in enumerate(self._streams)]).to(self._like)


def seeds(n: int, gen: Generator) -> Tensor:
    """One seed for each of ``n`` images; the first ones do not depend on ``n``."""
    return torch.randint(2**63 - 1, (n,), generator=gen, device=gen.device).cpu()
