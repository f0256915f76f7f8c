"""Draws as an InferenceData: chains, predictions and likelihoods are where ArviZ expects them."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch

import attar
from attar.core.errors import AttarError
from attar.infer import Draws
from tests.known import gaussians, generator

pytestmark = pytest.mark.skipif(find_spec("arviz") is None, reason="needs the extra arviz")

DATA = gaussians(4)
NETWORK = attar.network("linear", DATA.spec)
THETA = torch.stack([NETWORK.init(generator(seed)) for seed in range(7)])


def draws(chains: int) -> Draws:
    """Seven draws; those of chains alternate, and the last round is not complete."""
    potential = [[float(10 * chain + n) for n in range(-(-7 // chains))] for chain in range(chains)]
    return Draws(NETWORK, THETA, DATA.spec, {"trace": {"potential": potential}} if chains > 1 else {})


def test_chains_are_told_apart() -> None:
    found = draws(2).to_arviz()
    assert dict(found.posterior.sizes) == {"chain": 2, "draw": 3, "parameter": NETWORK.size}
    assert np.array_equal(found.posterior.theta.values[1, 2], THETA[5].numpy())  # draw 5 is the third of chain 1
    assert found.sample_stats.lp.values.tolist() == [[0, -1, -2], [-10, -11, -12]]


def test_draws_that_are_no_chains_stand_in_one() -> None:
    found = draws(1).to_arviz()
    assert np.array_equal(found.posterior.theta.values[0], THETA.numpy())
    assert not hasattr(found, "sample_stats")


def test_predictions_and_likelihoods_are_those_of_every_draw() -> None:
    posterior = draws(1)
    found = posterior.to_arviz(DATA)
    p = found.posterior.p
    assert p.dims == ("chain", "draw", "example", "class")
    assert list(p["class"].values) == list(DATA.spec.target.names)
    assert np.allclose(p.mean(("chain", "draw")).values, posterior.predict(DATA.x).numpy())
    true = p.values[0, :, np.arange(len(DATA)), DATA.y.numpy()].T
    assert np.allclose(found.log_likelihood.y.values[0], np.log(true))
    assert found.observed_data.y.values.tolist() == DATA.y.tolist()


def test_examples_of_another_shape_are_refused() -> None:
    with pytest.raises(AttarError, match="for examples of shape"):
        draws(1).to_arviz(gaussians(4, size=5))
