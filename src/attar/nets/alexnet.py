"""AlexNet for small images."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from attar.nets.layers import Block, image, stack


def alexnet(shape: Sequence[int], classes: int, norm: str, activation: str, pool: str) -> nn.Sequential:
    """Five convolutions, three poolings and one linear layer (Krizhevsky et al., NeurIPS 2012, made small)."""
    blocks = [Block(128, 5), Block(192, 5), Block(256, pools=False), Block(192, pools=False), Block(192)]
    return stack(image("alexnet", shape, smallest=2), blocks, norm, activation, pool, classes)
