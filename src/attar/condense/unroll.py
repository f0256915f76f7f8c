"""Memory-efficient differentiation through many training steps (gradient checkpointing)."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt
from typing import Any

import torch
from torch import Tensor

Step = Callable[..., Tensor]  # (number, theta, *inputs) → theta, differentiable where theta requires a gradient


def unroll(step: Step, theta: Tensor, inputs: tuple[Tensor, ...], steps: int) -> Tensor:
    r"""The result of ``steps`` updates ``theta = step(number, theta, *inputs)``, differentiable in theta and inputs.

    Only every :math:`\sqrt N`-th theta is stored in the forward pass. In the backward pass the others are recomputed,
    and each step is repeated with its graph, one at a time. So memory is that of one step and :math:`2 \sqrt N`
    vectors, and time about that of two more forward passes. ``step`` must be deterministic for each number.
    """
    end: Tensor = _Unrolled.apply(step, steps, theta, *inputs)  # type: ignore[no-untyped-call]
    return end


class _Unrolled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, step: Step, steps: int, theta: Tensor, *inputs: Tensor) -> Tensor:
        ctx.step, ctx.steps, ctx.stride = step, steps, max(1, ceil(sqrt(steps)))
        still = [value.detach() for value in inputs]
        kept = []
        for number in range(steps):
            if number % ctx.stride == 0:
                kept.append(theta)
            theta = _plain(step, number, theta, still)
        ctx.save_for_backward(*kept, *inputs)
        ctx.kept = len(kept)
        return theta

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (slope,) = gradients
        kept, inputs = ctx.saved_tensors[: ctx.kept], ctx.saved_tensors[ctx.kept :]
        still = [value.detach() for value in inputs]
        totals = [torch.zeros_like(value) for value in inputs]
        for segment in reversed(range(len(kept))):
            first = segment * ctx.stride
            thetas = [kept[segment]]
            for number in range(first, min(first + ctx.stride, ctx.steps) - 1):
                thetas.append(_plain(ctx.step, number, thetas[-1], still))
            for offset in reversed(range(len(thetas))):
                slope, *parts = _back(ctx.step, first + offset, thetas[offset], still, slope)
                totals = [total if part is None else total + part for total, part in zip(totals, parts, strict=True)]
        return None, None, slope, *totals


def _plain(step: Step, number: int, theta: Tensor, inputs: list[Tensor]) -> Tensor:
    with torch.enable_grad():  # a step computes a gradient itself
        return step(number, theta.detach(), *inputs).detach()


def _back(step: Step, number: int, theta: Tensor, inputs: list[Tensor], slope: Tensor) -> Any:
    """The vector-Jacobian product of one step, for theta and every input."""
    with torch.enable_grad():
        leaves = [value.detach().requires_grad_() for value in (theta, *inputs)]
        end = step(number, *leaves)
        return torch.autograd.grad(end, leaves, slope, allow_unused=True)
