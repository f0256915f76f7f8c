"""VGG-11 and VGG-16 for small images."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from attar.nets.layers import Block, image, stack


def vgg11(shape: Sequence[int], classes: int, norm: str, activation: str, pool: str) -> nn.Sequential:
    """Eight convolutions, five poolings and one linear layer (Simonyan & Zisserman, ICLR 2015, configuration A)."""
    blocks = [Block(64), Block(128)]
    for width in (256, 512, 512):
        blocks += [Block(width, pools=False), Block(width)]
    return stack(image("vgg11", shape, smallest=2), blocks, norm, activation, pool, classes)


def vgg16(shape: Sequence[int], classes: int, norm: str, activation: str, pool: str) -> nn.Sequential:
    """Thirteen convolutions, five poolings and one linear layer (Simonyan & Zisserman, ICLR 2015, configuration D)."""
    blocks: list[Block] = []
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        blocks += [Block(width, pools=False)] * (count - 1) + [Block(width)]
    return stack(image("vgg16", shape, smallest=2), blocks, norm, activation, pool, classes)
