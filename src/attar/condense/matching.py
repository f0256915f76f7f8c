"""What methods share that compare real and synthetic examples of a class: pairs of them, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Generator, Tensor
from torch.func import grad, vmap

from attar.condense.contract import Task
from attar.core.errors import AttarError
from attar.data import Data, augment
from attar.nets import Network
from attar.nets.losses import losses
from attar.nets.train import Objective

#: Activations of a class up to which all classes share one ``vmap``: measured, it takes a quarter to three quarters of
#: the time of a loop there, and more than the loop above.
TOGETHER = 1_500_000

Pair = tuple[Data, Data]  # real and synthetic examples of one class


def pairs(
    syn: Data, task: Task, batch: int, strategy: str, gen: Generator, skip: Tensor | None = None, mode: str = "one"
) -> list[Pair]:
    """Up to ``batch`` real examples and all synthetic ones of every class, augmented by the same draw.

    Real examples where the mask ``skip`` is set are left out.
    """
    found = []
    for c in range(task.classes):
        omega = augment.draw(strategy, gen, mode)  # the same draw for both sides: that is what makes it siamese
        real, fake = task.data.sample_class(c, batch, gen, skip), syn.of_class(c)
        for part, kind in ((real, "real"), (fake, "synthetic")):
            if not len(part):
                raise AttarError(f"Class {c} has no {kind} example to match: give every class at least one.")
        found.append((real.map(omega), fake.map(omega)))
    return found


def gradient(network: Network, theta: Tensor, data: Data, graph: bool = False) -> Tensor:
    """The gradient of the mean cross-entropy with respect to ``theta``; with ``graph`` it can be differentiated."""
    theta = theta.detach().requires_grad_()
    (g,) = torch.autograd.grad(_loss(network, theta, data.x, data.y), theta, create_graph=graph)
    return g


def gradients(network: Network, theta: Tensor, parts: Sequence[Data], graph: bool = False) -> Tensor:
    """``gradient`` of each part, ``(parts, p)``: of all in one pass where that is faster."""
    sizes = {len(part) for part in parts}
    if len(sizes) == 1 and network.activations * max(sizes) <= TOGETHER:
        x, y = torch.stack([part.x for part in parts]), torch.stack([part.y for part in parts])
        with torch.set_grad_enabled(graph):
            together: Tensor = vmap(grad(partial(_loss, network)), in_dims=(None, 0, 0))(theta.detach(), x, y)
        return together
    if graph:
        return torch.stack([gradient(network, theta, part, graph=True) for part in parts])
    return torch.stack([plain(network, theta, part) for part in parts])


def plain(network: Network, theta: Tensor, data: Data) -> Tensor:
    """``gradient`` without a graph, by the engine that trains networks; all examples count alike."""
    g, _ = Objective(network, replace(data, weights=None), len(data)).gradient(theta.detach()[None], torch.Generator())
    return g[0]


def distance(network: Network, a: Tensor, b: Tensor) -> Tensor:
    """One minus cosine, summed over layers with weights and their output rows (biases and norms do not count)."""
    layers = zip(network.unflatten(a).values(), network.unflatten(b).values(), strict=True)
    return torch.stack([_rows(u.flatten(1), v.flatten(1)) for u, v in layers if u.ndim > 1]).sum()


def distances(network: Network, a: Tensor, b: Tensor) -> Tensor:
    """``distance`` of each row of ``a``, ``(k, p)``, to that of ``b``."""
    found: Tensor = vmap(partial(distance, network))(a, b)
    return found


def _loss(network: Network, theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return losses("cross-entropy")(network(theta, x), y).mean()


def _rows(u: Tensor, v: Tensor) -> Tensor:
    # The published 1e-6 damps rows whose gradients are next to nothing, which would else steer the examples.
    cosine: Tensor = (u * v).sum(1) / (u.norm(dim=1) * v.norm(dim=1) + 1e-6)
    return (1 - cosine).sum()
