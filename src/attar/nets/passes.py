"""Forward passes without a graph: how many examples to process at once."""

from __future__ import annotations

import torch
from torch import Tensor

from attar.nets.network import Network

#: Activations of one forward pass on the CPU. Measured with ConvNets, ResNet-18, LeNet and an MLP on 28x28 and 32x32
#: images: a pass of 10 to 30 million is the fastest, one of 150 million takes up to 2.9 times as long per example,
#: because the C library returns such large blocks to the system and requests them again. After ``keep_freed_memory`` it
#: does not, and a larger pass only takes more memory.
FORWARD = 18_000_000


def in_parts(network: Network, x: Tensor, most: int | None = None) -> tuple[Tensor, ...]:
    """Split examples into parts for forward passes without a graph.

    The more activations an example has, the smaller the parts. A network whose predictions depend on the
    other examples of a batch, as with batch norm, gets parts of ``most``, and so do all devices other than the CPU.

    Args:
        network: The network.
        x: The examples, ``(n, ...)``.
        most: The largest number of examples in a part; all of them if not given.
    """
    parts: tuple[Tensor, ...] = x.split(part_size(network, x.device, len(x) if most is None else most))
    return parts


def part_size(network: Network, device: torch.device, most: int) -> int:
    """The number of examples per forward pass, at most ``most``."""
    if device.type == "cpu" and network.separate:
        most = min(most, FORWARD // network.activations)
    return max(1, most)
