"""Bayesian coresets by Frank-Wolfe."""

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
    "frank-wolfe",
    about="log-likelihood, by convex steps",
    choose="Bayesian baseline",
    takes="1 min",
    paper="Campbell & Broderick, Automated Scalable Bayesian Inference via Hilbert Coresets, JMLR 2019",
    cost="a short training, one forward pass of the data, and n·draws·C·h operations",
)
@dataclass(frozen=True)
class FrankWolfe(Hilbert):
    r"""Approximate the log-likelihood of all examples by a few weighted ones, by Frank-Wolfe on a polytope.

    .. math:: \min_{w \ge 0} \Big\| \sum_i w_i L_i - L \Big\|^2 \quad \text{where} \quad
        \sum_i w_i \|L_i\| = \sigma = \sum_i \|L_i\|

    Every round moves towards the vertex :math:`\sigma L_i / \|L_i\|` best aligned with the residual, by the optimal
    step. Scores are the relative errors after each pick.
    """

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        return self.approximate(rounds, view, size, gen)


def rounds(vectors: Tensor) -> Iterator[Round]:
    """Rounds until the residual is zero."""
    norms, total = vectors.norm(dim=1), vectors.sum(0)
    sigma, size = norms.sum(), total.norm()
    weights, now = torch.zeros_like(norms), torch.zeros_like(total)
    vertices = sigma * vectors / norms.clamp(min=torch.finfo(norms.dtype).tiny)[:, None]
    first = True
    while float((total - now).norm()) > 1e-12 * float(size):
        pick = int((vertices @ (total - now)).masked_fill(norms == 0, -torch.inf).argmax())
        way = vertices[pick] - now
        share = 1.0 if first else float((way @ (total - now) / way.square().sum()).clamp(0, 1))
        first = False
        weights = (1 - share) * weights
        weights[pick] += share * sigma / norms[pick]
        now = now + share * way
        yield Round(pick, weights, float((total - now).norm() / size))
