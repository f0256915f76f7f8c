"""A view of the data: what a network makes of every example, computed once and only if asked for."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Generator, Tensor

from attar.data import Data
from attar.nets import Network
from attar.nets.train import Training, train


class View:
    """Examples as a shortly trained network sees them.

    Args:
        data: The examples to choose from.
        network: What looks at them.
        training: How it is trained on them first.
        gen: Randomness of that training; a method that never asks for features spends none.
        chunk: Examples a forward pass.
    """

    def __init__(self, data: Data, network: Network, training: Training, gen: Generator, chunk: int = 1024) -> None:
        self.data, self.network, self.training, self.gen, self.chunk = data, network, training, gen, chunk

    def __len__(self) -> int:
        return len(self.data)

    @cached_property
    def theta(self) -> Tensor:
        """Parameters of the trained network, ``(p,)``."""
        return train(self.network, self.data, self.training, self.gen)[0]

    @cached_property
    def features(self) -> Tensor:
        """Inputs of the last layer, ``(n, h)``."""
        with torch.no_grad():
            return torch.cat([self.network.features(self.theta, x) for x in self.data.x.split(self.chunk)])

    def part(self, indices: Tensor) -> View:
        """The view of some examples under the same network."""
        return _Part(self, indices)


class _Part(View):
    def __init__(self, whole: View, indices: Tensor) -> None:
        super().__init__(whole.data[indices], whole.network, whole.training, whole.gen, whole.chunk)
        self.whole, self.indices = whole, indices

    @cached_property
    def theta(self) -> Tensor:
        return self.whole.theta

    @cached_property
    def features(self) -> Tensor:
        return self.whole.features[self.indices]
