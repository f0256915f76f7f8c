"""Train, validation and test sets that share one domain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.data.data import Data, Domain
from attar.data.raw import Raw, RawSplit, check
from attar.data.scaling import CHUNK, Scaling, fit


@dataclass(frozen=True, eq=False)
class Split:
    """The three sets of one source; scaling was fitted on ``train`` alone.

    Choices are made on ``val``; ``test`` is read once per reported figure.
    """

    train: Data
    val: Data
    test: Data

    @property
    def domain(self) -> Domain:
        """Name, class names and scaling, the same for all three sets."""
        return self.train.domain

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.train.classes

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one example."""
        return self.train.shape


def build(raw: RawSplit, name: str, where: str, *, val: float, test: float, seed: int, scaling: str) -> Split:
    """Check what a reader brought, cut the missing sets from train by class, fit the scaling and apply it."""
    for share, word in ((val, "val"), (test, "test")):
        if not 0 < share < 1:
            raise AttarError(f"{word} is the share cut from train and must lie between 0 and 1, got {share}.")
    check(raw, where, per_class=2 if raw.test is not None else 3)
    train, held = raw.train, raw.test
    if held is None:  # never by seed: what one run tests on, no other run may train on
        train, held = cut(train, test, torch.Generator().manual_seed(0), keep=2)
    train, chosen = cut(train, val, torch.Generator().manual_seed(seed), keep=1)

    x = as_float(train)
    fitted = fit(scaling, x)
    domain = Domain(name, raw.classes, fitted)
    return Split(
        Data(_scale(x, fitted), torch.from_numpy(train.y), domain=domain),
        Data(_scale(as_float(chosen), fitted), torch.from_numpy(chosen.y), domain=domain),
        Data(_scale(as_float(held), fitted), torch.from_numpy(held.y), domain=domain),
    )


def cut(raw: Raw, share: float, gen: Generator, *, keep: int) -> tuple[Raw, Raw]:
    """Cut ``share`` of every class, at least one example of it, and leave at least ``keep``; order is kept."""
    y = torch.from_numpy(raw.y)
    taken = torch.zeros(len(y), dtype=torch.bool)
    for c in range(int(y.max()) + 1):
        members = (y == c).nonzero().flatten()
        size = min(max(1, round(share * len(members))), len(members) - keep)
        taken[members[torch.randperm(len(members), generator=gen)[:size]]] = True
    mask = taken.numpy()
    return Raw(raw.x[~mask], raw.y[~mask]), Raw(raw.x[mask], raw.y[mask])


def as_float(raw: Raw) -> Tensor:
    """A float32 copy of the examples, with uint8 pixels in [0, 1]."""
    pixels = torch.from_numpy(np.array(raw.x, dtype=np.float32))
    return pixels.div_(255) if raw.x.dtype == np.uint8 else pixels


def _scale(x: Tensor, scaling: Scaling) -> Tensor:
    """Scale in place, chunk by chunk."""
    for chunk in torch.split(x, CHUNK):
        chunk.copy_(scaling.apply(chunk))
    return x
