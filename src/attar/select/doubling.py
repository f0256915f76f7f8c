"""k-center in one pass, by the doubling algorithm."""

from __future__ import annotations

from typing import NamedTuple

import torch
from pydantic.dataclasses import dataclass
from torch import Tensor

from attar.core.forecast import Order
from attar.core.registry import selector
from attar.select.stream import Picked, Streaming, filled


class Centres(NamedTuple):
    """The centres so far."""

    size: int
    radius: float  #: τ; every example is within 2τ of a centre, and the best possible radius is at least τ/4
    x: Tensor  #: (centres, h)
    numbers: Tensor  #: (centres,) int64
    spares: Tensor  #: (at most 2 size,) int64, examples that are no centres


@selector(
    "k-center-doubling",
    about="k-center in one pass",
    choose="streams",
    takes="1 min",
    paper="Charikar, Chekuri, Feder & Motwani, Incremental Clustering and Dynamic Information Retrieval, STOC 1997",
    cost="a short training, one forward pass of the data, and n·k·h operations",
)
@dataclass(frozen=True)
class Doubling(Streaming):
    r"""Keep at most k centres; an example farther than τ from all of them is a new one.

    When there are k + 1, two of them share a cluster of the best clustering, so its radius is at least τ/2. Then τ is
    doubled, and centres are merged until all are more than τ apart. Examples stay within 2τ of a centre, since
    :math:`2 \cdot \tau/2 + \tau = 2\tau`, and the best possible radius is at least τ/4: the radius is at most 8 times
    that. Scores are distances to the nearest other pick. Centres that were merged fill up the picks if there are fewer
    than k.
    """

    @property
    def grows(self) -> Order:
        return Order(picks=1)

    def begin(self, references: Tensor, size: int) -> Centres:
        none = torch.zeros(0, dtype=torch.int64, device=references.device)
        return Centres(size, 0.0, references[:0], none, none)

    def feed(self, state: Centres, features: Tensor, numbers: Tensor) -> Centres:
        near = self._near(features, state.x)
        start = 0
        while len(far := (near[start:] > state.radius).nonzero()):
            place = start + int(far[0])
            new = features[place : place + 1]
            state = _spare(state, numbers[start:place])
            state = state._replace(
                x=torch.cat([state.x, new]), numbers=torch.cat([state.numbers, numbers[place : place + 1]])
            )
            start = place + 1
            if len(state.x) <= state.size:
                near = torch.minimum(near, self._near(features, new))
            else:
                state = _merged(state)
                near = self._near(features, state.x)
        return _spare(state, numbers[start:])

    def finish(self, state: Centres) -> Picked:
        apart = _distances(state.x, state.x).fill_diagonal_(torch.inf).amin(1)
        scores = torch.where(apart.isfinite(), apart, torch.zeros_like(apart))
        chosen = filled(state.numbers.tolist(), state.spares.tolist(), state.size)
        scores = torch.cat([scores, scores.new_zeros(len(chosen) - len(scores))])
        return Picked(torch.tensor(chosen, device=state.numbers.device), scores)

    @staticmethod
    def _near(features: Tensor, centres: Tensor) -> Tensor:
        """Distances to the nearest centre, ``(b,)``."""
        if not len(centres):
            return torch.full((len(features),), torch.inf, device=features.device, dtype=features.dtype)
        return _distances(features, centres).amin(1)


def _distances(a: Tensor, b: Tensor) -> Tensor:
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")  # exact for equal rows


def _merged(state: Centres) -> Centres:
    """Double τ and merge centres that are not farther apart, until at most k are left."""
    apart = _distances(state.x, state.x)
    radius = state.radius or float(apart[~torch.eye(len(apart), dtype=torch.bool, device=apart.device)].min())
    kept = list(range(len(apart)))
    while len(kept) > state.size:
        radius = 2 * radius
        some: list[int] = []
        for centre in kept:
            if not some or float(apart[centre, some].min()) > radius:
                some.append(centre)
        kept = some
    gone = sorted(set(range(len(apart))) - set(kept))
    state = _spare(state, state.numbers[gone], first=True)
    return state._replace(radius=radius, x=state.x[kept], numbers=state.numbers[kept])


def _spare(state: Centres, numbers: Tensor, first: bool = False) -> Centres:
    both = (numbers, state.spares) if first else (state.spares, numbers)
    return state._replace(spares=torch.cat(both)[: 2 * state.size])
