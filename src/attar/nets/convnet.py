"""ConvNet-D-W, the usual network of dataset condensation."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from attar.nets.layers import Block, Width, image, stack, widths


def convnet(
    shape: Sequence[int], classes: int, depth: int, width: Width, norm: str, activation: str, pool: str
) -> nn.Sequential:
    """``depth`` blocks of 3x3 convolution, norm, activation and pooling (Gidaris & Komodakis, CVPR 2018)."""
    blocks = [Block(each) for each in widths(depth, width)]
    return stack(image("convnet", shape, smallest=2), blocks, norm, activation, pool, classes)
