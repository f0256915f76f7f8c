"""Convolutions for training on the processor, by other ways than PyTorch's where those were measured to be faster."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from attar.nets.fast import winograd


class FirstOrder(TorchFunctionMode):
    """While it is entered, convolutions that gain by another way are done by it, whatever module asks for them.

    Their gradient cannot be differentiated again, so this is for first-order training.
    """

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func is F.conv2d and not kwargs:
            if winograd.gains(*args):
                return winograd.convolve(*args[:3])
            if _gray(*args):
                return _Gray.apply(*args)  # type: ignore[no-untyped-call]
        return func(*args, **(kwargs or {}))


def _gray(x: Tensor, weight: Tensor, bias: Tensor | None = None, *options: Any) -> bool:
    """Whether a constant input has one channel and the bias is learnt, with the options as a module gives them."""
    given = len(options) == 4 and all(isinstance(option, tuple) for option in options[:3])
    learnt = bias is not None and bias.requires_grad and torch.is_grad_enabled()
    return given and learnt and x.ndim == 4 and x.shape[1] == 1 and not x.requires_grad and x.device.type == "cpu"


class _Gray(torch.autograd.Function):
    """A convolution of gray images. Its bias has its gradient by a sum: oneDNN takes as long for it as for the rest."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        groups: int,
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
