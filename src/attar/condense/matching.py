"""Shared by methods that match real and synthetic examples of a class: paired batches, and gradient distances."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Generator, Tensor
from torch.func import vmap

from attar.condense.contract import Task
from attar.core.errors import AttarError
from attar.data import Data, augment
from attar.nets import Network

Pair = tuple[Data, Data]  # real and synthetic examples of one class


def pairs(
    syn: Data, task: Task, batch: int, strategy: str, gen: Generator, skip: Tensor | None = None, mode: str = "one"
) -> list[Pair]:
    """Up to ``batch`` real examples and all synthetic ones of every class of this process, augmented by the same draw.

    Real examples where the mask ``skip`` is set are left out; weights are ignored. Random numbers are drawn for all
    classes, so that processes agree.
    """
    found, own = [], range(task.classes)[task.share.rows(task.classes)]
    for c in range(task.classes):
        omega = augment.draw(strategy, gen, mode)  # siamese augmentation: the same draw for both
        real, fake = task.data.sample_class(c, batch, gen, skip), syn.of_class(c)
        for part, kind in ((real, "real"), (fake, "synthetic")):
            if not len(part):
                raise AttarError(f"Class {c} has no {kind} example to match: give every class at least one.")
        if c in own:
            found.append((replace(real, weights=None).map(omega), fake.map(omega)))
    return found


def distance(network: Network, a: Tensor, b: Tensor) -> Tensor:
    """One minus cosine similarity, summed over output rows of weight matrices; biases and norms are left out."""
    layers = zip(network.unflatten(a).values(), network.unflatten(b).values(), strict=True)
    return torch.stack([_rows(u.flatten(1), v.flatten(1)) for u, v in layers if u.ndim > 1]).sum()


def distances(network: Network, a: Tensor, b: Tensor) -> Tensor:
    """``distance`` of each row of ``a``, ``(k, p)``, to that of ``b``."""
    found: Tensor = vmap(partial(distance, network))(a, b)
    return found


def _rows(u: Tensor, v: Tensor) -> Tensor:
    # The published 1e-6 damps rows with near-zero gradients, which would dominate otherwise.
    cosine: Tensor = (u * v).sum(1) / (u.norm(dim=1) * v.norm(dim=1) + 1e-6)
    return (1 - cosine).sum()
