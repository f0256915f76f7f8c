"""Fast first-order gradients: when to compute several at once, and one in parts of a batch that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil

import torch
from torch import Tensor

from attar.nets import fast
from attar.nets.fast.modes import current
from attar.nets.network import Network
from attar.nets.passes import FORWARD

#: Activations of a batch up to which vectors share one ``vmap``: below, overhead outweighs arithmetic (an MLP on 10
#: examples gains a third), above, batched convolutions are slower than plain ones by a fifth and more.
TOGETHER = 400_000
#: The same for one vector on several batches, which share its weights: measured, ``vmap`` takes a quarter to three
#: quarters of the time of a loop up to here, and more than the loop above.
SHARED = 1_500_000
#: Activations of one forward pass on the CPU: few enough that the C library reuses their memory by default, many enough
#: to keep the CPU busy. 32 images of 28x28 in a ConvNet of width 128.
AT_ONCE = 18_000_000
#: And at least this many per parameter, because every part of a batch repeats the work on all parameters.
PER_PARAMETER = 16

Batch = tuple[Tensor, Tensor, Tensor | None]  # examples, labels, weights
Loss = Callable[[Tensor, Tensor, Tensor | None], Tensor]  # logits, labels, weights → what these examples add


def together(network: Network, shared: bool, examples: int) -> bool:
    """Whether several batches of this size are computed at once, for one shared vector or for several."""
    return fast.enabled() and network.activations * examples <= (SHARED if shared else TOGETHER)


def value(network: Network, theta: Tensor, batch: Batch, loss: Loss) -> Tensor:
    """The loss of one vector, without gradients, always in float32: samplers compare values."""
    at = network.at(theta)
    return _sum([loss(at.logits(x), y, weights) for x, y, weights in _parts(network, batch, FORWARD)])


def gradient(network: Network, theta: Tensor, batch: Batch, loss: Loss) -> tuple[Tensor, Tensor]:
    """The loss of one vector and its gradient, by plain autograd over parts of the batch, in the current mode."""
    at = network.at(theta, current())
    most = max(AT_ONCE, PER_PARAMETER * network.size)
    values, total = [], None
    with torch.enable_grad():
        for x, y, weights in _parts(network, batch, most):
            found = loss(at.logits(x), y, weights)
            slopes = torch.autograd.grad(found, at.leaves, materialize_grads=True)
            flat = torch.cat([slope.flatten() for slope in slopes])
            total = flat if total is None else total.add_(flat)
            values.append(found.detach())
    assert total is not None
    return _sum(values), total


def _sum(values: list[Tensor]) -> Tensor:
    return values[0] if len(values) == 1 else torch.stack(values).sum()


def _parts(network: Network, batch: Batch, most: int) -> Iterable[Batch]:
    """The batch in parts of limited size; whole if the logits of an example depend on the other examples."""
    x, y, weights = batch
    count = ceil(network.activations * len(x) / most) if x.device.type == "cpu" else 1
    if count < 2 or not network.separate:
        return [batch]
    parts = x.chunk(count)
    counted = [None] * len(parts) if weights is None else weights.chunk(count)
    return zip(parts, y.chunk(count), counted, strict=True)
