"""ConvNet-D-W, the usual network of dataset condensation."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from attar.nets.layers import Block, Width, image, side_by_side, stack, widths


def convnet(
    shape: Sequence[int], classes: int, depth: int, width: Width, branches: int, norm: str, activation: str, pool: str
) -> nn.Sequential:
    """``depth`` blocks of 3x3 convolution, norm, activation and pooling (Gidaris & Komodakis, CVPR 2018).

    Several branches are as many such stacks, whose features one last layer has side by side: the kernel of the features
    is the mean of their kernels, which varies less from one initialisation to another.
    """
    blocks = [Block(each) for each in widths(depth, width)]
    size = image("convnet", shape, smallest=2)
    return side_by_side([stack(size, blocks, norm, activation, pool, classes) for _ in range(branches)], classes)
