"""Rare classes and wrong labels: as many as asked for, in train alone, and the same again."""

from pathlib import Path

import numpy as np
import pytest
import torch

import attar
from attar.core.errors import AttarError
from attar.data.again import load_again
from attar.data.damage import Damage, damaged
from attar.data.raw import Raw


def raw(per_class: int = 100, classes: int = 5) -> Raw:
    y = np.arange(classes).repeat(per_class)
    return Raw(y[:, None].astype(np.float32), y, np.arange(len(y)))


def gen(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_first_class_is_as_much_more_frequent_as_asked_for() -> None:
    rare = damaged(raw(), 5, Damage(10, 0), gen())
    counts = np.bincount(rare.y).tolist()
    assert counts == [100, 56, 32, 18, 10]
    assert (rare.x[:, 0] == rare.y).all()
    assert (raw().y[rare.rows] == rare.y).all()


def test_the_share_of_wrong_labels_is_that_asked_for_and_spread_over_all_others() -> None:
    before, after = raw(), damaged(raw(), 5, Damage(1, 0.2), gen())
    wrong = before.y != after.y
    assert wrong.sum() == 100
    assert np.bincount((after.y - before.y)[wrong] % 5, minlength=5)[1:].min() > 10
    assert (before.x == after.x).all()
    assert set(damaged(raw(2), 5, Damage(1, 0.9), gen()).y) == set(range(5))  # no class is empty


def test_the_seed_decides_which() -> None:
    same, other = damaged(raw(), 5, Damage(10, 0.2), gen()), damaged(raw(), 5, Damage(10, 0.2), gen(1))
    assert (damaged(raw(), 5, Damage(10, 0.2), gen()).y == same.y).all()
    assert (same.rows != other.rows).any()


def test_only_train_is_damaged_and_the_origin_says_how() -> None:
    clean, worse = attar.load("digits"), attar.load("digits", imbalance=10, flip=0.2)
    assert clean.val.rows is not None
    assert worse.val.rows is not None
    assert clean.val.rows.tolist() == worse.val.rows.tolist()
    assert torch.equal(clean.test.y, worse.test.y)
    assert len(worse.train) < len(clean.train) / 2
    assert worse.origin is not None
    assert (worse.origin.imbalance, worse.origin.flip) == (10, 0.2)
    assert load_again(worse.spec, worse.origin).train.fingerprint == worse.train.fingerprint


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(AttarError, match=r"imbalance is the ratio .* 1 or more: got 0\.5"):
        attar.load("digits", imbalance=0.5)
    with pytest.raises(AttarError, match="flip is the share of wrong labels"):
        attar.load("digits", flip=1.0)


def test_a_comparison_on_damaged_data_is_recorded(tmp_path: Path) -> None:
    spec = {
        "data": "digits",
        "methods": [],
        "per_class": 1,
        "seeds": 0,
        "network": "linear",
        "draws": 1,
        "converged": False,
    }
    with pytest.warns(attar.SkewWarning):
        study = attar.compare({**spec, "training": {"steps": 2}, "imbalance": 10, "flip": 0.2}, folder=tmp_path)
    assert study.config["loading"]["imbalance"] == 10
    assert study.config["loading"]["flip"] == 0.2
    assert {"balanced", "worst", "majority"} < set(study.csv().splitlines()[0].split(","))
    counts = torch.bincount(attar.load("digits", imbalance=10, flip=0.2).train.y)
    assert study.data["majority"] == int(counts.argmax())
    page = attar.report(study, tmp_path / "p.html").read_text()
    assert 'id="classes"' in page
