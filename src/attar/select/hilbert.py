"""Examples as vectors: their log-likelihoods under draws from a posterior, the space of Bayesian coresets."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from math import sqrt
from typing import NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.nn.functional import log_softmax

from attar.core.forecast import Order
from attar.data.noise import normal
from attar.select.contract import Selection, Selector
from attar.select.keep import SelectionWarning
from attar.select.view import View

PATIENCE = 100  # rounds without a new example after which a method stops


@dataclass(frozen=True)
class Hilbert(Selector):
    """The options of methods that approximate the sum of all vectors by a few weighted ones."""

    draws: int = Field(default=200, ge=2, description="posterior draws under which log-likelihoods are compared")
    prior: float = Field(default=1.0, gt=0, description="precision of the Gaussian prior of the last layer")

    @property
    def grows(self) -> Order:
        return Order(picks=1)

    def approximate(
        self, rounds: Callable[[Tensor], Iterator[Round]], view: View, size: int, gen: Generator
    ) -> Selection:
        """Pick ``size`` examples by the rounds of a method."""
        return sparse(rounds, embed(view, self.draws, self.prior, gen), size)


def embed(view: View, draws: int, prior: float, gen: Generator) -> Tensor:
    r"""Centred log-likelihoods under a Gaussian approximation of the posterior of the last layer, ``(n, draws)``.

    .. math:: L_i = \tfrac{1}{\sqrt{S}} \big(\ell_i(\theta_s) - \tfrac{1}{S} \textstyle\sum_t \ell_i(\theta_t)\big)_s,
        \qquad \theta_s \sim N\big(\theta, (\textstyle\sum_i \mathrm{diag} H_i + \mathrm{prior})^{-1}\big)

    so that :math:`\langle L_i, L_j \rangle` is the covariance of two log-likelihoods.
    """
    precision = view.whole.curvatures.double().sum() + prior
    noise = normal(precision.expand(draws, *precision.shape), gen)
    return centred(likelihoods(view, noise / precision.sqrt()))


def centred(likelihoods: Tensor) -> Tensor:
    """Centred over draws, and scaled so that inner products are covariances."""
    return (likelihoods - likelihoods.mean(1, keepdim=True)) / sqrt(likelihoods.shape[1])


def likelihoods(view: View, shifts: Tensor) -> Tensor:
    """Log-likelihoods after shifts ``(draws, C, h + 1)`` of the last layer, ``(n, draws)`` in float64.

    They are computed in the view's own precision, a chunk at a time.
    """
    h, shifts = view.features.shape[1], shifts.to(view.features)
    labels = view.targets
    rows = []
    for part in torch.arange(len(view), device=shifts.device).split(view.chunk):
        moved = torch.einsum("nh,sch->nsc", view.features[part], shifts[:, :, :h])
        moved = moved + shifts[:, :, h] if view.bias else moved
        log_p = log_softmax(view.logits[part][:, None] + moved, 2)
        rows.append(torch.einsum("nsc,nc->ns", log_p, labels[part]).double())
    return torch.cat(rows)


class Round(NamedTuple):
    """The result of one round of a sparse approximation."""

    pick: int  #: the example whose weight went up
    weights: Tensor  #: of all examples, ``(n,)``
    error: float  #: ‖Σ w_i L_i − L‖ / ‖L‖


def nothing_to_tell(vectors: Tensor, size: int) -> Selection | None:
    """Equal weights, with a warning, if no example carries information about the posterior; else None."""
    if bool(vectors.any()):
        return None
    warnings.warn(
        "The network predicts every example with certainty, so all log-likelihoods are the same under all draws: the "
        "picks are the first ones, with equal weights. Train the scoring network for fewer steps.",
        SelectionWarning,
        stacklevel=2,
    )
    count = min(size, len(vectors))
    scores = torch.ones(count, device=vectors.device)
    return Selection(torch.arange(count, device=vectors.device), scores, scores * (len(vectors) / count))


def sparse(rounds: Callable[[Tensor], Iterator[Round]], vectors: Tensor, size: int) -> Selection:
    """Run rounds until ``size`` different examples are picked.

    If no more come, the rest has weight zero: the examples best aligned with the sum of all first.
    """
    if alike := nothing_to_tell(vectors, size):
        return alike
    order = (vectors @ vectors.sum(0)).argsort(descending=True, stable=True)
    picks: list[int] = []
    scores: list[float] = []
    weights, waited = torch.zeros(len(order), dtype=torch.float64, device=order.device), 0
    for found in rounds(vectors):
        new = found.pick not in picks
        waited = 0 if new else waited + 1
        if (new and len(picks) == min(size, len(order))) or waited > PATIENCE:
            break
        weights = found.weights
        if new:
            picks.append(found.pick)
            scores.append(found.error)
    taken = set(picks)
    rest = [i for i in order.tolist() if i not in taken][: max(0, min(size, len(order)) - len(picks))]
    last = scores[-1] if scores else 1.0
    indices = torch.tensor([*picks, *rest], dtype=torch.int64, device=order.device)
    return Selection(
        indices, torch.tensor([*scores, *[last] * len(rest)], device=order.device), weights[indices].float()
    )
