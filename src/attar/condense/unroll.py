"""Memory-efficient differentiation through many training steps (gradient checkpointing)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from math import ceil, sqrt
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

GRAPH = 2**28  # largest graph of several steps, in bytes
THETAS = 2**24  # bytes of parameters up to which those of every step are stored: too few to matter

Step = Callable[..., Tensor]  # (number, theta, *inputs) → theta, differentiable where theta requires a gradient


def unroll(step: Step, theta: Tensor, inputs: tuple[Tensor, ...], steps: int) -> Tensor:
    r"""The result of ``steps`` updates ``theta = step(number, theta, *inputs)``, differentiable in theta and inputs.

    Every theta is stored in the forward pass if they are small (``THETAS``), otherwise only every :math:`\sqrt N`-th.
    The backward pass takes one segment between them after the other. If the graph of a segment is small (``GRAPH``),
    its steps are repeated once, with that graph. If not, its thetas are recomputed first and each step is then repeated
    with its own graph. So memory grows with :math:`\sqrt N` where that matters, and time is that of one or two more
    forward passes. ``step`` must be deterministic for each number.
    """
    end: Tensor = _Unrolled.apply(step, steps, theta, *inputs)  # type: ignore[no-untyped-call]
    return end


class _Unrolled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, step: Step, steps: int, theta: Tensor, *inputs: Tensor) -> Tensor:
        ctx.step, ctx.steps = step, steps
        ctx.stride = 1 if steps * theta.nbytes <= THETAS else ceil(sqrt(steps))
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
        totals, graph = [torch.zeros_like(value) for value in inputs], _Size()
        for segment in reversed(range(len(kept))):
            first = segment * ctx.stride
            numbers = range(first, min(first + ctx.stride, ctx.steps))
            if graph.bytes and len(numbers) * graph.bytes <= GRAPH:
                parts = [(numbers, kept[segment])]
            else:
                thetas = [kept[segment]]
                for number in numbers[:-1]:
                    thetas.append(_plain(ctx.step, number, thetas[-1], still))
                parts = [(numbers[k : k + 1], theta) for k, theta in enumerate(thetas)]
            for some, theta in reversed(parts):
                with nullcontext() if graph.bytes else graph:
                    end, leaves = _graph(ctx.step, some, theta, still)
                slope, *found = torch.autograd.grad(end, leaves, slope, allow_unused=True)
                totals = [total if part is None else total + part for total, part in zip(totals, found, strict=True)]
        return None, None, slope, *totals


def _plain(step: Step, number: int, theta: Tensor, inputs: list[Tensor]) -> Tensor:
    with torch.enable_grad():  # a step computes a gradient itself
        return step(number, theta.detach(), *inputs).detach()


def _graph(step: Step, numbers: range, theta: Tensor, inputs: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Where some steps lead, and what that can be differentiated by: theta and every input."""
    with torch.enable_grad():
        leaves = [value.detach().requires_grad_() for value in (theta, *inputs)]
        end = leaves[0]
        for number in numbers:
            end = step(number, end, *leaves[1:])
    return end, leaves


class _Size(saved_tensors_hooks):
    """Measures what the graph that is made in this context keeps."""

    def __init__(self) -> None:
        self.storages: dict[int, int] = {}
        super().__init__(self._keep, lambda tensor: tensor)

    def _keep(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        self.storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    @property
    def bytes(self) -> int:
        return sum(self.storages.values())
