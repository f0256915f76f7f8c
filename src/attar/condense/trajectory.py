"""Training on synthetic examples that can be differentiated, and how near it comes to where experts went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attar.condense.driver import Diverged
from attar.condense.unroll import unroll
from attar.core.errors import AttarError
from attar.data import Data

Energy = Callable[[Tensor, Data], Tensor]  # parameter vectors (k, p) and examples → (k,), differentiable in both
Look = Callable[[Data], Data]  # the examples as one step sees them: a minibatch of them, augmented, or all


def train_through(energy: Energy, theta: Tensor, syn: Data, step_size: Tensor, looks: Sequence[Look]) -> Tensor:
    """Where a descent on the examples ends, one step for each look at them, differentiable in examples and step."""
    all_parts = {"x": syn.x, "y": syn.y, "weights": syn.weights}
    learnt = {name: part for name, part in all_parts.items() if part is not None and part.is_floating_point()}

    def step(number: int, theta: Tensor, size: Tensor, *values: Tensor) -> Tensor:
        again = theta.requires_grad  # else this is the way there, which nobody differentiates
        at = theta if again else theta.requires_grad_()
        parts: Any = dict(zip(learnt, values, strict=True))
        (slope,) = torch.autograd.grad(
            energy(at[None], looks[number](replace(syn, **parts))).sum(), at, create_graph=again
        )
        return at - size * slope

    return unroll(step, theta, (step_size, *learnt.values()), len(looks))


def distance(reached: Tensor, target: Tensor, start: Tensor) -> Tensor:
    """How far is left of the way from start to target, squared."""
    way = (start - target).square().sum()
    if not float(way):
        raise AttarError("An expert did not move from start to target: train experts at a higher rate, or for longer.")
    return (reached - target).square().sum() / way


def require_finite(gap: Tensor, step_size: Tensor, steps: int) -> Tensor:
    """The gap as it is; an error that names the learnt step size where training went astray."""
    if not bool(torch.isfinite(gap)):
        raise Diverged(
            f"Training on the examples diverged within {steps} steps at the learnt step size {step_size.item():g}: "
            "lower scalar_lr, or start from a smaller step size."
        )
    return gap
