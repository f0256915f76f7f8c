"""DenseNet-121 for small images."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from attar.nets.layers import ACTIVATIONS, NORMS, classifier, image

GROWTH = 32  # channels that every layer adds


def densenet121(shape: Sequence[int], classes: int, norm: str, activation: str) -> nn.Sequential:
    """Four stages of densely connected layers, halved in between, behind a 3x3 stem (Huang et al., CVPR 2017)."""
    channels, *_ = image("densenet121", shape, smallest=16)  # a smaller image would end in a 1x1 map
    width = 2 * GROWTH
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1, bias=False)]
    for stage, depth in enumerate((6, 12, 24, 16)):
        if stage > 0:
            layers += [*_preactivated(width, width // 2, 1, norm, activation), nn.AvgPool2d(2)]
            width //= 2
        for _ in range(depth):
            layers.append(Dense(width, norm, activation))
            width += GROWTH
    layers += [NORMS[norm](width), ACTIVATIONS[activation](), nn.AdaptiveAvgPool2d(1)]
    return classifier(layers, width, classes)


class Dense(nn.Module):
    """A bottleneck whose output is set beside its input: y = [x, B(x)]."""

    def __init__(self, inside: int, norm: str, activation: str) -> None:
        super().__init__()
        squeeze = _preactivated(inside, 4 * GROWTH, 1, norm, activation)
        self.branch = nn.Sequential(*squeeze, *_preactivated(4 * GROWTH, GROWTH, 3, norm, activation))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.branch(x)], 1)


def _preactivated(inside: int, width: int, kernel: int, norm: str, activation: str) -> list[nn.Module]:
    convolution = nn.Conv2d(inside, width, kernel, padding=kernel // 2, bias=False)
    return [NORMS[norm](inside), ACTIVATIONS[activation](), convolution]
