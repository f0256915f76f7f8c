"""Convolutions for training on the CPU, by other algorithms than PyTorch's where those were measured to be faster.

Their gradient cannot be differentiated again, so this is for first-order training.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from attar.nets.fast import winograd

GRAY = 250_000  #: output size from which the bias gradient of a grey image costs more than a Python call

Pair = tuple[int, int]


def forwards(module: nn.Module) -> dict[nn.Module, Callable[[Tensor], Tensor]]:
    """The fastest forward pass of every plain ``nn.Conv2d`` inside the module."""
    return {part: partial(_forward, part) for part in module.modules() if isinstance(part, nn.Conv2d) and _known(part)}


def conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Tensor:
    """``torch.nn.functional.conv2d`` by the fastest algorithm."""
    if winograd.gains(x, weight, stride, padding, dilation, groups):
        return winograd.convolve(x, weight, bias)
    if _gray(x, weight, bias):
        return cast(Tensor, _Gray.apply(x, weight, bias, stride, padding, dilation, groups))  # type: ignore[no-untyped-call]
    return F.conv2d(x, weight, bias, stride, padding, dilation, groups)


def _known(layer: nn.Conv2d) -> bool:
    """Whether a layer is an ``nn.Conv2d`` with zero padding of this size."""
    own = type(layer).forward, type(layer)._conv_forward
    usual = own == (nn.Conv2d.forward, nn.Conv2d._conv_forward) and "forward" not in vars(layer)
    return usual and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


def _forward(layer: nn.Conv2d, x: Tensor) -> Tensor:
    options: Any = layer.stride, layer.padding, layer.dilation, layer.groups
    return conv2d(x, layer.weight, layer.bias, *options)


def _gray(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether a constant input has one channel, the bias is learnt, and the output is large."""
    learnt = bias is not None and bias.requires_grad and torch.is_grad_enabled()
    fits = x.ndim == 4 and x.shape[1] == 1 and not x.requires_grad and x.device.type == "cpu"
    return learnt and fits and x.numel() * len(weight) >= GRAY


class _Gray(torch.autograd.Function):
    """A convolution of grey images whose bias gradient is a plain sum; oneDNN's takes as long as everything else."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: Pair, padding: Pair, dilation: Pair, groups: int
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.options = stride, padding, dilation, False, (0, 0), groups
        return F.conv2d(x, weight, bias, stride, padding, dilation, groups)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        of_all = torch.ops.aten.convolution_backward
        _, of_weight, _ = of_all(grad, *ctx.saved_tensors, None, *ctx.options, (False, True, False))
        return None, cast(Tensor, of_weight), grad.sum((0, 2, 3)), None, None, None, None
