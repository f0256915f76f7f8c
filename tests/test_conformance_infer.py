"""What must be true of every registered way to a posterior."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import attar
from attar import Training
from attar.infer import Draws
from tests.conformance import SETS, infer, inferred, of_kinds, of_samplers
from tests.known import gaussians, generator

WITHOUT_CHANCE = {"knn"}  # samplers whose one draw does not depend on the seed


@of_samplers
@of_kinds
def test_a_posterior_has_as_many_different_draws_as_asked_and_predicts_probabilities(name: str, kind: str) -> None:
    posterior, data = inferred(name, kind), SETS[kind]
    different = 1 if name in WITHOUT_CHANCE else 3
    assert posterior.theta.shape == (different, posterior.network.size)
    assert len(posterior.theta.unique(dim=0)) == different
    assert posterior.sample(4, generator()).shape == (4, posterior.network.size)
    predicted = posterior.predict(data.x)
    assert predicted.shape == (len(data), data.classes)
    assert predicted.dtype == torch.float64
    assert bool((predicted >= 0).all())
    assert torch.allclose(predicted.sum(1), torch.ones(len(data)).double())


@of_samplers
@of_kinds
def test_inference_depends_on_its_seed_alone_and_leaves_the_data_as_it_was(name: str, kind: str) -> None:
    first, before = inferred(name, kind), SETS[kind].fingerprint
    torch.manual_seed(123)
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]["key"].copy()
    assert torch.equal(first.theta, infer(name, kind).theta)
    assert torch.equal(first.theta, infer(name, kind, seed=1).theta) == (name in WITHOUT_CHANCE)
    assert torch.equal(torch_before, torch.get_rng_state())
    assert np.array_equal(numpy_before, np.random.get_state(legacy=False)["state"]["key"])
    assert SETS[kind].fingerprint == before


@of_samplers
@of_kinds
def test_prediction_does_not_depend_on_the_chunk(name: str, kind: str) -> None:
    posterior = inferred(name, kind)
    x = SETS[kind].x
    assert torch.allclose(posterior.predict(x), replace(posterior, chunk=5).predict(x), atol=1e-6)


@of_samplers
@of_kinds
def test_a_saved_posterior_predicts_the_same_bits(name: str, kind: str, tmp_path: Path) -> None:
    posterior = inferred(name, kind)
    posterior.save(tmp_path / "posterior.safetensors")
    loaded = Draws.load(tmp_path / "posterior.safetensors")
    assert torch.equal(loaded.theta, posterior.theta)
    assert loaded.spec.target.names == posterior.spec.target.names
    assert torch.equal(loaded.predict(SETS[kind].x), posterior.predict(SETS[kind].x))
    raw = SETS[kind].spec.stored(SETS[kind].x).numpy()
    assert np.allclose(loaded.predict_proba(raw), posterior.predict(SETS[kind].x), atol=1e-4)


@of_samplers
def test_inference_as_it_comes_learns_separated_classes(name: str) -> None:
    posterior = attar.infer(SETS["features"], name, network="mlp-d1w8", training=Training(steps=100))
    assert attar.evaluate(posterior, gaussians(32, seed=5)).accuracy > 0.95
