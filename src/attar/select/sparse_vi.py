"""Bayesian coresets by sparse variational inference."""

from __future__ import annotations

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.forecast import Order
from attar.core.registry import selector
from attar.data.noise import normal
from attar.select.contract import Selection, Selector
from attar.select.hilbert import centred, likelihoods, nothing_to_tell
from attar.select.nnls import nnls
from attar.select.view import View

TINY = torch.finfo(torch.float64).tiny


@selector(
    "sparse-vi",
    about="last-layer posterior, weighted",
    choose="very few examples",
    takes="3 min",
    paper="Campbell & Beronov, Sparse Variational Inference: Bayesian Coresets from Scratch, NeurIPS 2019",
    cost="a short training, one forward pass of the data, and steps·n·draws·C·h operations per pick",
)
@dataclass(frozen=True)
class SparseVI(Selector):
    r"""Minimise the divergence from the posterior of a few weighted examples to that of all.

    .. math:: \min_{w \ge 0} KL(\pi_w \| \pi), \qquad
        \nabla_w KL = -\mathrm{Cov}_{\pi_w}\Big[\ell, \; \sum_i (1 - w_i) \ell_i\Big]

    The next pick is the example best correlated with the residual. Then the weights move towards the zero of the
    gradient under the current draws, a least-squares problem, in steps of decreasing size with new draws after each.
    The posterior :math:`\pi_w` of the last layer is approximated by a Gaussian: one Newton step, of optimal length,
    from a prior around the scoring network, with the diagonal of the Hessian as precision. Scores are the shares of
    the standard deviation that remain unexplained.
    """

    draws: int = Field(default=200, ge=2, description="draws from the coreset's posterior")
    steps: int = Field(default=3, ge=1, description="updates of the weights after each pick")
    prior: float = Field(default=1.0, gt=0, description="precision of the Gaussian prior of the last layer")

    @property
    def grows(self) -> Order:
        return Order(picks=1)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        picks = torch.empty(0, dtype=torch.int64, device=view.features.device)
        weights = torch.empty(0, dtype=torch.float64, device=picks.device)
        scores = []
        vectors = self._vectors(view, picks, weights, gen)
        if alike := nothing_to_tell(vectors, size):
            return alike
        for _ in range(min(size, len(view))):
            missing = vectors.sum(0) - weights @ vectors[picks]
            fit = (vectors @ missing) / vectors.norm(dim=1).clamp(min=TINY)
            fit[picks] = -torch.inf
            picks = torch.cat([picks, fit.argmax()[None]])
            weights = torch.cat([weights, weights.new_zeros(1)])
            for step in range(self.steps):
                solved = _solve(vectors[picks], vectors.sum(0), weights)
                weights = weights + (solved - weights) / (2 + step)
                vectors = self._vectors(view, picks, weights, gen)
            missing = vectors.sum(0) - weights @ vectors[picks]
            scores.append(missing.norm() / vectors.sum(0).norm().clamp(min=TINY))
        return Selection(picks, torch.stack(scores).float(), weights.float())

    def _vectors(self, view: View, picks: Tensor, weights: Tensor, gen: Generator) -> Tensor:
        """Centred log-likelihoods of all examples under new draws from the posterior of the picked ones."""
        mean, precision = posterior(view, picks, weights, self.prior)
        noise = normal(mean.expand(self.draws, *mean.shape), gen)
        return centred(likelihoods(view, mean + noise / precision.sqrt()))


def posterior(view: View, picks: Tensor, weights: Tensor, prior: float) -> tuple[Tensor, Tensor]:
    """Mean, as a shift of the last layer, and precision, both ``(C, h + 1)``, given weighted examples.

    A diagonal Hessian treats coordinates as independent, so a full step would be too long by about the number of
    features. So the step ends at the minimum of the exact second-order model along it.
    """
    precision = view.curvatures[picks].double().sum(weights) + prior
    slope = view.slopes(False)[picks].double().sum(weights)
    way = -slope / precision
    h = view.features.shape[1]
    moved = view.features[picks].double() @ way[:, :h].T + (way[:, h] if view.bias else 0.0)
    p = view.probabilities[picks].double()
    bend = weights @ ((p * moved.square()).sum(1) - (p * moved).sum(1).square()) + prior * way.square().sum()
    return -(slope * way).sum() / bend.clamp(min=TINY) * way, precision


def _solve(chosen: Tensor, total: Tensor, start: Tensor) -> Tensor:
    gram = chosen @ chosen.T
    # With more picks than draws the system is singular; a small ridge makes it regular.
    ridge = (1e-9 * gram.diagonal().mean()).clamp(min=TINY)
    return nnls(gram + ridge * torch.eye(len(gram), dtype=gram.dtype, device=gram.device), chosen @ total, start)
