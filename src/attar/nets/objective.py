"""The loss of a data set and its gradient, for several parameter vectors: what trainings and samplers walk down."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import torch
from torch import Generator, Tensor
from torch.func import grad_and_value, vmap

from attar.data import Data
from attar.data.augment import jitter
from attar.nets.fast.first_order import FirstOrder
from attar.nets.losses import losses
from attar.nets.network import Network

#: Activations of a vector's minibatch up to which vectors share one ``vmap``: below, overhead outweighs arithmetic (an
#: MLP on 10 examples gains a third), above, batched convolutions are slower than plain ones by a fifth and more.
TOGETHER = 400_000
#: Activations that a forward pass on the processor may leave behind: few enough that the C library reuses their
#: blocks where nobody told it to, many enough to keep it busy. 32 images of 28x28 in a ConvNet of width 128.
AT_ONCE = 18_000_000


def loss(logits: Tensor, y: Tensor, weights: Tensor, name: str = "cross-entropy") -> Tensor:
    """Weighted mean of a loss; ``y`` may be hard or soft, ``weights`` have mean one over the whole set."""
    return (weights * losses(name)(logits, y)).mean()


class Objective:
    """The mean weighted loss of a data set, for several parameter vectors at once.

    Small networks on few examples spend most of a step on overhead, which the vectors then share under ``vmap``.
    Larger ones go one by one, by plain autograd over parts of the minibatch, so that memory does not grow with it.
    Each vector sees its own minibatch, unless all examples fit into one.

    Args:
        network: What the vectors are parameters of.
        data: Hard or soft labels, with or without weights (which count relative to their mean).
        batch: Examples a minibatch.
        augment: Augmentation of every minibatch.
        loss: Which loss, by name.
    """

    def __init__(
        self, network: Network, data: Data, batch: int, augment: str = "none", loss: str = "cross-entropy"
    ) -> None:
        self.network, self.data, self.batch, self.augment, self.loss = network, data, batch, augment, loss
        self.weights = data.x.new_ones(len(data)) if data.weights is None else data.weights / data.weights.mean()

    def gradient(self, theta: Tensor, gen: Generator) -> tuple[Tensor, Tensor]:
        """Gradients ``(k, p)`` and values ``(k,)`` of one minibatch for each row of ``theta``."""
        if len(self.data) <= self.batch and self.augment == "none":
            return self._gradients(theta, self.data.x, self.data.y, self.weights, shared=True)
        return self.gradient_at(theta, torch.stack([self._minibatch(gen) for _ in theta]), gen)

    def gradient_at(self, theta: Tensor, index: Tensor, gen: Generator) -> tuple[Tensor, Tensor]:
        """Gradients ``(k, p)`` and values ``(k,)`` of the examples ``index``, ``(k, b)``; ``gen`` augments them."""
        x = jitter(self.augment, self.data.x[index].flatten(0, 1), gen).unflatten(0, index.shape)
        return self._gradients(theta, x, self.data.y[index], self.weights[index], shared=False)

    def value(self, theta: Tensor) -> Tensor:
        """Values ``(k,)`` over all examples, ``batch`` at a time."""
        total = theta.new_zeros(len(theta))
        for part in torch.arange(len(self.data), device=theta.device).split(self.batch):
            x, y, weights = self.data.x[part], self.data.y[part], self.weights[part]
            if self._together(len(theta), len(part)):
                values = vmap(self._loss, in_dims=(0, None, None, None))(theta, x, y, weights)
            else:
                with FirstOrder():
                    values = torch.stack([torch.stack([*self._losses(row, x, y, weights)]).sum() for row in theta])
            total = total + values * len(part)
        return total / len(self.data)

    def _minibatch(self, gen: Generator) -> Tensor:
        return torch.randperm(len(self.data), generator=gen, device=gen.device)[: self.batch]

    def _gradients(self, theta: Tensor, x: Tensor, y: Tensor, weights: Tensor, shared: bool) -> tuple[Tensor, Tensor]:
        """Gradients and values; the rows of ``theta`` see the same examples if ``shared``, else a row of them each."""
        if self._together(len(theta), len(x) if shared else x.shape[1]):
            dims = (0, None, None, None) if shared else 0
            g, value = vmap(grad_and_value(self._loss), in_dims=dims)(theta, x, y, weights)
            return g, value
        seen = [(x, y, weights)] * len(theta) if shared else zip(x, y, weights, strict=True)
        found = [self._alone(row, *part) for row, part in zip(theta, seen, strict=True)]
        return torch.stack([g for g, _ in found]), torch.stack([value for _, value in found])

    def _alone(self, theta: Tensor, x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient and value for one vector, by plain autograd."""
        row = theta.detach().requires_grad_()
        g, total = torch.zeros_like(theta), theta.new_zeros(())
        with torch.enable_grad(), FirstOrder():
            for value in self._losses(row, x, y, weights):
                g += torch.autograd.grad(value, row)[0]
                total += value.detach()
        return g, total

    def _losses(self, theta: Tensor, x: Tensor, y: Tensor, weights: Tensor) -> Iterator[Tensor]:
        """What parts of the examples, each small enough to reuse its memory, add to the loss of one vector."""
        count = self._parts(len(x)) if x.device.type == "cpu" else 1
        for part in zip(x.chunk(count), y.chunk(count), weights.chunk(count), strict=True):
            yield self._loss(theta, *part) * (len(part[0]) / len(x))

    def _loss(self, theta: Tensor, x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
        return loss(self.network(theta, x), y, weights, self.loss)

    def _together(self, rows: int, examples: int) -> bool:
        return rows > 1 and self.network.activations * examples <= TOGETHER

    def _parts(self, examples: int) -> int:
        parts = ceil(self.network.activations * examples / AT_ONCE)
        return parts if parts > 1 and self.network.separate else 1
