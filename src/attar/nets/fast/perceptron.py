r"""Several multi-layer perceptrons at once: batched matrix products, and a gradient written out by hand.

.. math:: h_l = a_l(W_l h_{l-1} + b_l), \quad
    \delta_{l-1} = W_l^\top \delta_l \odot a_{l-1}', \quad
    \nabla_{W_l} = \delta_l h_{l-1}^\top, \quad \nabla_{b_l} = \sum_i \delta_{l,i}

Examples are columns. In networks of a few thousand parameters, ``vmap`` and autograd take longer than the products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu_

Slope = Callable[[Tensor], Tensor]  # from logits, (k, classes, n), to the gradient of the losses in the logits


class Activation(NamedTuple):
    """An elementwise function whose derivative follows from its value."""

    apply: Callable[[Tensor], Tensor]  #: in place
    back: Callable[[Tensor, Tensor], Tensor]  #: from the slope in the output, and the output, to the slope in the input


class Dense(NamedTuple):
    """A linear layer with the activation that follows."""

    shape: tuple[int, int]  #: outputs, inputs
    bias: bool
    activation: Activation | None = None


class Held(NamedTuple):
    """Vectors, and the views of them that the layers use."""

    theta: Tensor  #: (k, p), a copy
    weights: list[Tensor]  #: (k, outputs, inputs)
    back: list[Tensor]  #: their transposes
    biases: list[Tensor]  #: (k, outputs, 1); empty where there is none


class Perceptron:
    """Linear layers, one after the other, whose parameters are consecutive parts of ``theta``."""

    def __init__(self, layers: Sequence[Dense]) -> None:
        self.layers = layers
        self._held: Held | None = None

    def logits(self, theta: Tensor, x: Tensor) -> Tensor:
        """Logits ``(k, classes, n)`` of examples ``(k, inputs, n)`` under each of the vectors ``(k, p)``, no graph."""
        return self._forward(self._at(theta), x)[-1]

    def gradient(self, theta: Tensor, x: Tensor, slope: Slope) -> tuple[Tensor, Tensor]:
        """Logits, as above, and the gradients of the losses in ``theta``, ``(k, p)``; ``x`` has no graph."""
        held = self._at(theta)
        seen = self._forward(held, x)
        at, found = slope(seen[-1]), []
        for number in reversed(range(len(self.layers))):
            layer = self.layers[number]
            if layer.activation is not None:
                at = layer.activation.back(at, seen[number + 1])
            if layer.bias:
                found.append(at.sum(2))
            found.append(torch.bmm(at, seen[number].mT).flatten(1))
            if number:
                at = torch.bmm(held.back[number], at)
        return seen[-1], torch.cat(found[::-1], 1)

    def _at(self, theta: Tensor) -> Held:
        """The layers at ``theta``; the next call overwrites them. Rounding does not depend on where theta is stored."""
        held = self._held
        kind = theta.shape, theta.dtype, theta.device
        if held is None or (held.theta.shape, held.theta.dtype, held.theta.device) != kind:
            copy = torch.empty(theta.shape, dtype=theta.dtype, device=theta.device)
            sizes = [size for layer in self.layers for size in (prod(layer.shape), layer.bias * layer.shape[0])]
            parts = copy.split(sizes, 1)
            weights = [part.view(-1, *layer.shape) for layer, part in zip(self.layers, parts[::2], strict=True)]
            biases = [part.unsqueeze(2) for part in parts[1::2]]
            held = self._held = Held(copy, weights, [weight.mT for weight in weights], biases)
        held.theta.copy_(theta.detach())
        return held

    def _forward(self, held: Held, x: Tensor) -> list[Tensor]:
        """The inputs of every layer, and the logits."""
        seen = [x]
        for layer, weight, bias in zip(self.layers, held.weights, held.biases, strict=True):
            output = torch.baddbmm(bias, weight, seen[-1]) if layer.bias else torch.bmm(weight, seen[-1])
            seen.append(output if layer.activation is None else layer.activation.apply(output))
        return seen


def perceptron(module: nn.Module, shape: Sequence[int]) -> Perceptron | None:
    """The layers of a module on examples of this shape; None if it is not a plain multi-layer perceptron."""
    layers: list[Dense] = []
    linear: list[nn.Parameter] = []
    for part in _leaves(module):
        activation = _activation(part)
        if isinstance(part, nn.Linear) and _plain(part, nn.Linear):
            layers.append(Dense((part.out_features, part.in_features), part.bias is not None))
            linear += part.parameters()
        elif activation is not None and layers and layers[-1].activation is None:
            layers[-1] = layers[-1]._replace(activation=activation)
        elif not _flattens(part):
            return None
    learnt = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if [*map(id, learnt)] != [*map(id, linear)]:  # some are frozen, tied, or not of these layers
        return None
    fits = [layer.shape[1] for layer in layers] == [prod(shape), *(layer.shape[0] for layer in layers[:-1])]
    return Perceptron(layers) if fits else None


def cross_entropy(logits: Tensor, y: Tensor, weights: Tensor | None, scale: float) -> Tensor:
    """The gradient in the logits of ``scale`` times the sum of the cross-entropy over the examples.

    Args:
        logits: ``(k, classes, n)``.
        y: ``(k, n)`` int64, or ``(k, n, classes)`` float if labels are soft.
        weights: ``(k, n)``, or None.
        scale: A factor.
    """
    slope = logits.softmax(1)
    if y.is_floating_point():
        labels = y.mT.to(slope)
        slope.mul_(labels.sum(1, keepdim=True)).sub_(labels)
    else:
        slope.scatter_(1, y.unsqueeze(1), -1.0, reduce="add")
    return slope.mul_(scale) if weights is None else slope.mul_(scale * weights.to(slope).unsqueeze(1))


def _leaves(module: nn.Module) -> Iterator[nn.Module]:
    """The layers of nested ``nn.Sequential``, in order."""
    if isinstance(module, nn.Sequential) and _plain(module, nn.Sequential):
        for part in module:
            yield from _leaves(part)
    else:
        yield module


def _plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether a module is of this very class and does nothing else."""
    hooks = module._forward_hooks or module._forward_pre_hooks
    return type(module) is kind and not hooks and "forward" not in vars(module)


def _flattens(module: nn.Module) -> bool:
    """Whether a module changes nothing but the shape of examples."""
    if isinstance(module, nn.Flatten):
        return _plain(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1)
    return _plain(module, nn.Identity)


def _activation(module: nn.Module) -> Activation | None:
    aten = torch.ops.aten
    if _plain(module, nn.ReLU):
        return Activation(torch.relu_, lambda slope, output: aten.threshold_backward.default(slope, output, 0))
    if _plain(module, nn.Sigmoid):
        return Activation(torch.sigmoid_, aten.sigmoid_backward.default)
    if isinstance(module, nn.LeakyReLU) and _plain(module, nn.LeakyReLU) and module.negative_slope > 0:
        rise = module.negative_slope  # positive, so that the output has the sign of the input
        back = partial(aten.leaky_relu_backward.default, negative_slope=rise, self_is_result=True)
        return Activation(partial(leaky_relu_, negative_slope=rise), back)
    return None
