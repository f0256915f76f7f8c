"""Differentiable training on synthetic examples, and its distance to the parameters of experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from attar.condense.contract import Task
from attar.condense.unroll import unroll
from attar.core.errors import AttarError, Diverged
from attar.data import Data, augment
from attar.nets.learner import SGD
from attar.nets.objective import Energy

Look = Callable[[Data], Data]  # the batch of one step: an augmented minibatch of the examples, or all of them


class Stretch(NamedTuple):
    """A segment of an expert's trajectory."""

    start: Tensor  #: ``(p,)``
    target: Tensor  #: ``(p,)``, some epochs later
    metrics: dict[str, Tensor]  #: which trajectory, and the epoch of the start


def stretch(task: Task, ahead: float | None, last: float | None, gen: Generator) -> Stretch:
    """A random segment of ``ahead`` epochs that starts at epoch ``last`` or earlier; raises if there is none.

    By default it is as long as the way to the experts' ``early`` checkpoint.
    """
    experts = task.trajectories
    (trajectory, epoch), start, target = experts.pair(gen, experts.early if ahead is None else ahead, last)
    place = {"trajectory": torch.tensor(trajectory), "epoch": torch.tensor(epoch)}
    return Stretch(start.to(task.data.device), target.to(task.data.device), place)


def looks(strategy: str, indices: Sequence[Tensor | None], gen: Generator) -> list[Look]:
    """The batch of every step: the examples of its indices, or all for None, each under its own augmentation.

    Every step has a seed of its own, so that a step that is computed again sees the same batch.
    """
    seeds = [int(torch.randint(2**62, (), generator=gen, device=gen.device)) for _ in indices]
    return [_look(strategy, index, seed, gen.device) for index, seed in zip(indices, seeds, strict=True)]


def _look(strategy: str, index: Tensor | None, seed: int, device: torch.device) -> Look:
    def look(data: Data) -> Data:
        again = torch.Generator(device).manual_seed(seed)
        return (data if index is None else data[index]).map(lambda x: augment.jitter(strategy, x, again))

    return look


def train_through(
    objective: Energy,
    theta: Tensor,
    syn: Data,
    step_size: Tensor,
    looks: Sequence[Look],
    momentum: Tensor | None = None,
) -> Tensor:
    """The parameters after gradient descent on the examples, differentiable in examples, labels, weights and scalars.

    Args:
        objective: The loss to minimise.
        theta: Initial parameters, ``(p,)``.
        syn: The examples.
        step_size: The learning rate, or that of every step, ``(steps,)``.
        looks: The batch of each step, as a function of the examples.
        momentum: Of the descent; none if not set.
    """
    all_parts = {"x": syn.x, "y": syn.y, "weights": syn.weights}
    learnt = {name: part for name, part in all_parts.items() if part is not None and part.is_floating_point()}

    def step(number: int, at: Tensor, size: Tensor, heavy: Tensor, *values: Tensor) -> Tensor:
        parts: Any = dict(zip(learnt, values, strict=True))
        batch, rate = looks[number](replace(syn, **parts)), size[number] if size.ndim else size
        learner, state = SGD(rate, 0.0 if momentum is None else heavy), first._replace(theta=at[:p], first=at[p:])
        # If theta needs no gradient, this is the forward pass of the unroll, and no graph is needed.
        (slope,) = objective.gradient(state.theta[None], batch, graph=at.requires_grad)
        state = learner.step(state, slope)
        return state.theta if momentum is None else torch.cat([state.theta, state.first])

    p, first = len(theta), SGD(0.0, 0.0 if momentum is None else momentum).init(theta)
    start = torch.cat([theta, first.first])  # a vector, with the sum of gradients if there is momentum
    heavy = theta.new_zeros(()) if momentum is None else momentum
    reached: Tensor = unroll(step, start, (step_size, heavy, *learnt.values()), len(looks))
    return reached[:p]


def distance(reached: Tensor, target: Tensor, start: Tensor) -> Tensor:
    """Squared distance to the target, relative to that from start to target."""
    way = (start - target).square().sum()
    if not float(way):
        raise AttarError("An expert did not move from start to target: train experts at a higher rate, or for longer.")
    return (reached - target).square().sum() / way


def require_finite(gap: Tensor, step_size: Tensor, steps: int) -> Tensor:
    """The gap itself; if it is not finite, an error that names the learnt step size."""
    if not bool(torch.isfinite(gap)):
        raise Diverged(
            f"Training on the examples diverged within {steps} steps at the learnt step size {_range(step_size)}: "
            "lower scalar_lr, or start from a smaller step size."
        )
    return gap


def _range(values: Tensor) -> str:
    low, high = values.min().item(), values.max().item()
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
