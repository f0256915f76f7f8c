"""LeNet-5."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from attar.nets.layers import ACTIVATIONS, classifier, image


def lenet(shape: Sequence[int], classes: int, activation: str) -> nn.Sequential:
    """Two 5x5 convolutions with pooling and three linear layers (LeCun et al., Proc. IEEE 1998)."""
    channels, *sides = image("lenet", shape, smallest=12)
    act = ACTIVATIONS[activation]
    pads = [2 if side <= 28 else 0 for side in sides]  # 28x28 and 32x32 images both end in a map of 5x5
    height, width = (((side + 2 * pad - 4) // 2 - 4) // 2 for side, pad in zip(sides, pads, strict=True))
    first = [nn.Conv2d(channels, 6, 5, padding=(pads[0], pads[1])), act(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(6, 16, 5), act(), nn.MaxPool2d(2), nn.Flatten()]
    dense = [nn.Linear(16 * height * width, 120), act(), nn.Linear(120, 84), act()]
    return classifier([*first, *second, *dense], 84, classes)
