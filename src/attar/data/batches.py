"""Random minibatches of a data set."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Generator, Tensor

from attar.data.augment import jitter
from attar.data.data import Data, Dataset


class Minibatches:
    """Random minibatches for trainings and chains.

    Args:
        data: The examples, in memory or in a file; weights are relative to their mean.
        size: Examples per batch; all of them if there are fewer.
        augment: Augmentation of every batch, with one draw per example.
    """

    def __init__(self, data: Dataset, size: int, augment: str = "none") -> None:
        self.data = Data(data.x, data.y, data.weights, data.spec) if isinstance(data, Data) else data  # without rows
        self.size, self.augment = size, augment
        self._mean = None if data.weights is None else data.weights.mean()

    def all(self) -> Data:
        """All examples in one batch, without augmentation."""
        data = self.data if isinstance(self.data, Data) else self.data.take(torch.arange(len(self.data)))
        return self._counted(data)

    def draw(self, count: int, gen: Generator) -> Data | list[Data]:
        """One random batch for each of ``count`` networks; all examples for all of them if they fit into one batch."""
        if len(self.data) <= self.size and self.augment == "none":
            return self.all()
        return self.take(torch.stack([self._random(gen) for _ in range(count)]), gen)

    def take(self, index: Tensor, gen: Generator) -> list[Data]:
        """The examples at every row of ``index``, ``(k, b)``, augmented."""
        batches = [self._counted(self.data.take(row)) for row in index]
        if self.augment == "none":
            return batches
        x = jitter(self.augment, torch.cat([batch.x for batch in batches]), gen)
        return [replace(batch, x=seen) for batch, seen in zip(batches, x.split(index.shape[1]), strict=True)]

    def _counted(self, batch: Data) -> Data:
        """The batch with weights relative to the mean of the whole set."""
        if self._mean is None or batch.weights is None:
            return batch
        return replace(batch, weights=batch.weights / self._mean)

    def _random(self, gen: Generator) -> Tensor:
        return torch.randperm(len(self.data), generator=gen, device=gen.device)[: self.size].to(self.data.device)
