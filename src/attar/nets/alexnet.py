"""AlexNet for small images, and AlexCifarNet of dataset distillation."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from attar.nets.layers import ACTIVATIONS, Block, classifier, image, stack


def alexnet(shape: Sequence[int], classes: int, norm: str, activation: str, pool: str) -> nn.Sequential:
    """Five convolutions, three poolings and one linear layer (Krizhevsky et al., NeurIPS 2012, made small)."""
    blocks = [Block(128, 5), Block(192, 5), Block(256, pools=False), Block(192, pools=False), Block(192)]
    return stack(image("alexnet", shape, smallest=2), blocks, norm, activation, pool, classes)


def alexcifarnet(shape: Sequence[int], classes: int, activation: str) -> nn.Sequential:
    """Two 5x5 convolutions of width 64 with max pooling and local response norm, and three linear layers.

    The network for CIFAR-10 in Dataset Distillation (Wang et al., 2018), which is that of TensorFlow's tutorial.
    """
    channels, height, width = image("alexcifarnet", shape, smallest=2)
    act = ACTIVATIONS[activation]
    first = [nn.Conv2d(channels, 64, 5, padding=2), act(), nn.MaxPool2d(3, 2, padding=1), LocalNorm()]
    second = [nn.Conv2d(64, 64, 5, padding=2), act(), LocalNorm(), nn.MaxPool2d(3, 2, padding=1), nn.Flatten()]
    size = 64 * -(-height // 4) * -(-width // 4)  # each pooling halves and rounds up
    dense = [nn.Linear(size, 384), act(), nn.Linear(384, 192), act()]
    return classifier([*first, *second, *dense], 192, classes)


class LocalNorm(nn.Module):
    r"""Local response norm over four neighbouring channels, by plain operations that ``vmap`` and double backward take.

    .. math:: y_c = x_c \left(1 + \frac{\alpha}{4} \sum_{j=c-2}^{c+1} x_j^2\right)^{-3/4}, \quad \alpha = 0.001 / 9
    """

    def forward(self, x: Tensor) -> Tensor:
        channels = x.shape[-3]
        squares = F.pad(x.square(), (0, 0, 0, 0, 2, 1))
        total = sum(squares[..., shift : shift + channels, :, :] for shift in range(4))
        return x * (1 + 0.001 / 9 / 4 * total) ** -0.75
