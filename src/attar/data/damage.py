"""Training sets made worse on purpose, to see what a reduction does to bias: rare classes and wrong labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator

from attar.core.errors import AttarError
from attar.data.raw import Raw


class Damage(NamedTuple):
    """What to do to a training set.

    Args:
        imbalance: How many times as frequent the first class becomes as the last; 1 leaves the classes as they are.
        flip: The share of labels to change; 0 leaves them as they are.
    """

    imbalance: float = 1.0
    flip: float = 0.0


def damaged(raw: Raw, classes: int, damage: Damage, gen: Generator) -> Raw:
    r"""A training set with rare classes and wrong labels.

    Of C classes with at most n examples, class c keeps :math:`n r^{-c / (C - 1)}` examples, or all if it has fewer: the
    first is r times as frequent as the last. Then a share of all labels is changed to another class, drawn uniformly.
    The first example of each class keeps its label, so that no class is empty.

    Args:
        raw: The training examples.
        classes: C.
        damage: What to do; r is its imbalance.
        gen: Draws the examples.
    """
    imbalance, flip = damage
    if not 1 <= imbalance < float("inf"):
        raise AttarError(f"imbalance is the ratio of the most to the least frequent class, 1 or more: got {imbalance}.")
    if not 0 <= flip < 1:
        raise AttarError(f"flip is the share of wrong labels, from 0 to below 1: got {flip}.")
    if imbalance > 1:
        raw = raw.at(_rarer(raw, classes, imbalance, gen))
    return raw if flip == 0 else raw._replace(y=_flipped(raw, classes, flip, gen))


def _rarer(raw: Raw, classes: int, ratio: float, gen: Generator) -> NDArray[np.bool_]:
    """A mask of the examples that are kept."""
    y = torch.from_numpy(raw.y)
    most, kept = int(torch.bincount(y).max()), torch.zeros(len(y), dtype=torch.bool)
    for c in range(classes):
        members = (y == c).nonzero().flatten()
        size = max(1, round(most * ratio ** (-c / (classes - 1))))
        kept[members[torch.randperm(len(members), generator=gen)[:size]]] = True
    mask: NDArray[np.bool_] = kept.numpy()
    return mask


def _flipped(raw: Raw, classes: int, share: float, gen: Generator) -> NDArray[np.int64]:
    """The labels after a share of them was changed."""
    y = torch.from_numpy(raw.y).clone()
    fixed = torch.tensor([int((y == c).nonzero()[0]) for c in range(classes)])
    free = torch.ones(len(y), dtype=torch.bool)
    free[fixed] = False
    places = free.nonzero().flatten()
    places = places[torch.randperm(len(places), generator=gen)[: round(share * len(y))]]
    y[places] = (y[places] + torch.randint(1, classes, (len(places),), generator=gen)) % classes
    labels: NDArray[np.int64] = y.numpy()
    return labels
