"""Bayesian coresets by greedy iterative geodesic ascent."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.registry import selector
from attar.select.contract import Selection
from attar.select.hilbert import Hilbert, Round
from attar.select.view import View


@selector(
    "giga",
    about="log-likelihood, greedy",
    choose="Bayesian baseline",
    takes="1 min",
    paper="Campbell & Broderick, Bayesian Coreset Construction via Greedy Iterative Geodesic Ascent, ICML 2018",
    cost="a short training, one forward pass of the data, and n·draws·C·h operations",
)
@dataclass(frozen=True)
class GIGA(Hilbert):
    r"""Approximate the log-likelihood of all examples by a few weighted ones: first its direction, then its norm.

    .. math:: \min_{w \ge 0} \Big\| \sum_i w_i L_i - L \Big\|

    On the unit sphere, every round moves along a geodesic towards the :math:`L_i / \|L_i\|` whose direction from the
    current point is best aligned with that of :math:`L / \|L\|`, up to the point nearest to it. The error falls
    geometrically. Scores are the relative errors after each pick.
    """

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        return self.approximate(rounds, view, size, gen)


def rounds(vectors: Tensor) -> Iterator[Round]:
    """Rounds until no example reduces the error further."""
    tiny = torch.finfo(vectors.dtype).tiny
    norms, total = vectors.norm(dim=1), vectors.sum(0)
    size = total.norm()
    units, goal = vectors / norms.clamp(min=tiny)[:, None], total / size.clamp(min=tiny)
    weights, now = torch.zeros_like(norms), torch.zeros_like(goal)
    while float(size) > 0:
        ahead = goal - (goal @ now) * now
        if float(ahead.norm()) < 1e-12:
            return
        along = units @ now
        across = (units - along[:, None] * now).norm(dim=1).clamp(min=1e-12)
        pick = int(((units @ ahead) / across).argmax())
        a, b, c = goal @ units[pick], goal @ now, along[pick]
        share = (a - b * c) / ((a - b * c) + (b - a * c)) if bool(now.any()) else torch.ones_like(a)
        if not 0 < float(share) <= 1:
            return
        moved = now + share * (units[pick] - now)
        weights = (1 - share) * weights
        weights[pick] += share
        weights, now = weights / moved.norm(), moved / moved.norm()
        scaled = weights * (size * (goal @ now)) / norms.clamp(min=tiny)
        yield Round(pick, scaled, float((goal - (goal @ now) * now).norm()))
