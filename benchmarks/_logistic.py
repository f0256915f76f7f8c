"""Coresets of Bayesian logistic regression, for the benchmark ``board``."""

from __future__ import annotations

from importlib.metadata import version

import torch
from torch import Generator, Tensor

import attar
from attar.bayes.models import Sample, distil
from attar.board.models import LogisticProblem
from attar.core.cost import Cost, measure
from attar.core.streams import reduction
from attar.coreset import Coreset
from attar.data import Data, Split
from attar.recipe import Recipe
from attar.study.compared import RANDOM
from attar.truth import Gaussian, LogisticRegression


def distilled(model: LogisticProblem, split: Split, method: str, seed: int) -> Coreset:
    """A random subset, or examples and weights that minimise the reverse divergence."""
    if method == RANDOM:
        return attar.reduce(split, RANDOM, per_class=5, seed=seed, network="linear")
    with measure() as cost:
        found = distil(
            model.model,
            split.train,
            10,
            reduction(seed),
            objective="rkl",
            weights="learnt",
            steps=200,
            sample=_laplace(model.model),
        )
    recipe = Recipe(
        method,
        5,
        seed,
        split.spec.name,
        split.train.fingerprint,
        "linear",
        version("attar"),
        cost=Cost(cost.wall, cost.cpu, cost.memory),
    )
    return Coreset(found, recipe)


def _laplace(model: LogisticRegression) -> Sample:
    """Draws from the Gaussian at the mode of a posterior, which Newton's method finds."""

    def sample(data: Data, n: int, gen: Generator) -> Tensor:
        potential, at = model.potential(data), model.prior.mean.clone()
        for _ in range(8):
            slope, curve = potential.gradient(at[None], gen)[0], _curvature(model, data, at)
            at = at - torch.linalg.solve(curve, slope)
        return Gaussian(at, torch.linalg.inv(_curvature(model, data, at))).sample(n, gen)

    return sample


def _curvature(model: LogisticRegression, data: Data, at: Tensor) -> Tensor:
    """The Hessian of the potential of logistic regression."""
    share = torch.sigmoid(data.x @ at)
    weights = (1.0 if data.weights is None else data.weights) * share * (1 - share)
    return model.prior.precision + data.x.T @ (weights[:, None] * data.x)
