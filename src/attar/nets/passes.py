"""Forward passes that keep no graph: how many examples go through a network at once."""

from __future__ import annotations

import torch
from torch import Tensor

from attar.nets.network import Network

#: Activations of one pass on the processor. Measured with ConvNets, ResNet-18, LeNet and an MLP on 28x28 and 32x32
#: images: a pass of 10 to 30 million is the fastest, one of 150 million takes up to 2.9 times as long an example,
#: because the C library gives such large blocks back to the system and has to ask for them again. After
#: ``keep_freed_memory`` it does not, and a larger pass only takes more memory.
FORWARD = 18_000_000


def in_parts(network: Network, x: Tensor, most: int | None = None) -> tuple[Tensor, ...]:
    """Examples in parts, in their order, that are to go through a network one after the other without a graph.

    The more activations an example has, the fewer examples are in a part. A network whose predictions depend on the
    other examples of a batch, as with batch norm, gets parts of ``most``, and so does any device but the processor.

    Args:
        network: What the parts go through.
        x: The examples, ``(n, ...)``.
        most: The largest number of examples in a part; all of them if not given.
    """
    parts: tuple[Tensor, ...] = x.split(part_size(network, x.device, len(x) if most is None else most))
    return parts


def part_size(network: Network, device: torch.device, most: int) -> int:
    """How many examples go through a network at once, at most ``most``."""
    if device.type == "cpu" and network.separate:
        most = min(most, FORWARD // network.activations)
    return max(1, most)
