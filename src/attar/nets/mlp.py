"""Multi-layer perceptron and the linear classifier."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from attar.nets.layers import ACTIVATIONS, classifier


def mlp(
    shape: Sequence[int], classes: int, depth: int = 2, width: int = 128, activation: str = "relu"
) -> nn.Sequential:
    """``depth`` hidden layers of ``width`` units each, on examples of any shape."""
    size = math.prod(shape)
    layers: list[nn.Module] = [nn.Flatten()]
    for _ in range(depth):
        layers += [nn.Linear(size, width), ACTIVATIONS[activation]()]
        size = width
    return classifier(layers, size, classes)


def linear(shape: Sequence[int], classes: int) -> nn.Sequential:
    """Softmax regression: no hidden layer."""
    return mlp(shape, classes, depth=0)
