"""Learnt examples are worth more than as many real ones: the reason to be of the whole library."""

from functools import cache
from math import hypot
from typing import Any

import pytest

import attar
from attar import Training
from attar.assess.metrics import mean_and_error
from tests.known import digits

SEEDS = range(5)
BUDGET = Training(steps=150)
LEARNING: dict[str, Any] = {"options": {"batch": 64}, "descent": {"steps": 50}}


@cache
def accuracy(method: str) -> tuple[float, float]:
    """Mean test accuracy over seeds, and its standard error, of one network trained on one example per class."""
    learns = LEARNING if method in attar.methods("condense", "bayes") else {}
    coresets = [attar.reduce(digits(), method, per_class=1, seed=s, training=BUDGET, **learns) for s in SEEDS]
    posteriors = [attar.infer(coreset, draws=1, seed=seed) for seed, coreset in zip(SEEDS, coresets, strict=True)]
    return mean_and_error([attar.evaluate(posterior, digits().test).accuracy for posterior in posteriors])


@pytest.mark.parametrize("method", ["dc", "dm", "vbpc"])
def test_a_learnt_coreset_beats_a_random_subset_by_more_than_chance(method: str) -> None:
    ours, our_error = accuracy(method)
    random, random_error = accuracy("uniform")
    assert ours - random > 2 * hypot(our_error, random_error)
