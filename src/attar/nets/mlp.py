"""Multi-layer perceptron and the linear classifier."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from attar.nets.layers import ACTIVATIONS, Width, classifier, widths


def mlp(
    shape: Sequence[int], classes: int, depth: int = 2, width: Width = 128, activation: str = "relu"
) -> nn.Sequential:
    """``depth`` hidden layers of ``width`` units, on examples of any shape."""
    size = math.prod(shape)
    layers: list[nn.Module] = [nn.Flatten()]
    for units in widths(depth, width):
        layers += [nn.Linear(size, units), ACTIVATIONS[activation]()]
        size = units
    return classifier(layers, size, classes)


def linear(shape: Sequence[int], classes: int) -> nn.Sequential:
    """Softmax regression: no hidden layer."""
    return mlp(shape, classes, depth=0)
