"""Inception-v3 for small images."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from attar.nets.layers import ACTIVATIONS, NORMS, classifier, image

Kernel = int | tuple[int, int]
Unit = tuple[int, Kernel] | tuple[int, Kernel, int]  # width and kernel of a convolution, and its stride if not 1


def inception_v3(shape: Sequence[int], classes: int, norm: str, activation: str) -> nn.Sequential:
    """Eleven blocks of parallel convolutions (Szegedy et al., CVPR 2016).

    For small images the five convolutions of the stem keep the size of the map: they have stride 1 and are padded, and
    the two poolings between them are left out. All widths and kernels, and so the number of parameters, are those of
    the paper. There is no auxiliary classifier.
    """
    channels, *_ = image("inception-v3", shape, smallest=11)  # a smaller image would end in a 1x1 map
    make = Maker(norm, activation)
    layers: list[nn.Module] = [make.chain(channels, (32, 3), (32, 3), (64, 3), (80, 1), (192, 3))]
    layers += [make.a(inside, pooled) for inside, pooled in ((192, 32), (256, 64), (288, 64))]
    layers.append(make.b(288))
    layers += [make.c(768, width) for width in (128, 160, 160, 192)]
    layers += [make.d(768), make.e(1280), make.e(2048), nn.AdaptiveAvgPool2d(1)]
    return classifier(layers, 2048, classes)


class Side(nn.Module):
    """Branches that read the same map, their outputs side by side."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], -3)


class Maker:
    """Builds the blocks of the paper, A to E, with one norm and activation."""

    def __init__(self, norm: str, activation: str) -> None:
        self.norm, self.activation = norm, activation

    def chain(self, inside: int, *units: Unit) -> nn.Sequential:
        """Convolutions with norm and activation; one with a stride is not padded."""
        layers: list[nn.Module] = []
        for width, kernel, *stride in units:
            sides = (kernel, kernel) if isinstance(kernel, int) else kernel
            pad = (0, 0) if stride else (sides[0] // 2, sides[1] // 2)
            convolution = nn.Conv2d(inside, width, sides, stride[0] if stride else 1, pad, bias=False)
            layers += [convolution, NORMS[self.norm](width), ACTIVATIONS[self.activation]()]
            inside = width
        return nn.Sequential(*layers)

    def pooled(self, inside: int, width: int) -> nn.Sequential:
        """Average pooling that keeps the size, and a 1x1 convolution."""
        return nn.Sequential(nn.AvgPool2d(3, 1, 1), self.chain(inside, (width, 1)))

    def a(self, inside: int, width: int) -> Side:
        """3x3 convolutions."""
        return Side(
            self.chain(inside, (64, 1)),
            self.chain(inside, (48, 1), (64, 5)),
            self.chain(inside, (64, 1), (96, 3), (96, 3)),
            self.pooled(inside, width),
        )

    def b(self, inside: int) -> Side:
        """Half the size."""
        double = self.chain(inside, (64, 1), (96, 3), (96, 3, 2))
        return Side(self.chain(inside, (384, 3, 2)), double, nn.MaxPool2d(3, 2))

    def c(self, inside: int, width: int) -> Side:
        """7x7 convolutions in two factors."""
        row, column = (1, 7), (7, 1)
        return Side(
            self.chain(inside, (192, 1)),
            self.chain(inside, (width, 1), (width, row), (192, column)),
            self.chain(inside, (width, 1), (width, column), (width, row), (width, column), (192, row)),
            self.pooled(inside, 192),
        )

    def d(self, inside: int) -> Side:
        """Half the size again."""
        factored = self.chain(inside, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2))
        return Side(self.chain(inside, (192, 1), (320, 3, 2)), factored, nn.MaxPool2d(3, 2))

    def e(self, inside: int) -> Side:
        """Rows and columns of 3 side by side."""
        return Side(
            self.chain(inside, (320, 1)),
            nn.Sequential(self.chain(inside, (384, 1)), self._both(384)),
            nn.Sequential(self.chain(inside, (448, 1), (384, 3)), self._both(384)),
            self.pooled(inside, 192),
        )

    def _both(self, width: int) -> Side:
        return Side(self.chain(width, (width, (1, 3))), self.chain(width, (width, (3, 1))))
