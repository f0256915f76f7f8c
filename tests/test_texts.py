"""Texts through the library: every selector, and the condensers for texts."""

from functools import cache
from pathlib import Path

import pytest
import torch

import attar
from attar.condense.kernels import FIXED
from attar.condense.label_solve import solve
from attar.core import registry
from attar.coreset import Coreset
from attar.data import Split

GOOD, BAD = ("good", "fine", "bright", "warm"), ("bad", "poor", "dull", "cold")
TEXTS = [
    f"the {kind} number {k} was {words[k % 4]} and {words[(k + 1) % 4]}"
    for k in range(30)
    for kind, words in (("film", GOOD), ("film", BAD), ("book", GOOD))
]
LABELS = ["up", "down", "read"] * 30
SHORT = attar.Training(steps=20, batch=16)


@cache
def split() -> Split:
    return attar.load((TEXTS, LABELS))


@pytest.mark.filterwarnings("ignore::attar.SelectionWarning")  # so few steps reach no fit
@pytest.mark.parametrize("name", registry.methods("select"))
def test_every_selector_returns_sentences_of_the_user(name: str) -> None:
    coreset = attar.reduce(split(), name, per_class=2, training=SHORT)
    rows = coreset.rows
    assert rows is not None
    assert coreset.texts() == [TEXTS[int(row)] for row in rows]
    assert [coreset.data.spec.target.names[label] for label in coreset.data.hard] == [LABELS[int(row)] for row in rows]


@pytest.mark.parametrize("network", ["embedding-bag-d1w16", "textconv-w8", "birnn-w8", "bilstm-w8"])
@pytest.mark.parametrize("name", ["dm", "dc", "kip", "vbpc"])
def test_condensers_learn_embeddings_that_read_as_words(name: str, network: str, tmp_path: Path) -> None:
    coreset = attar.reduce(split(), name, per_class=1, network=network, training=SHORT, descent={"steps": 3})
    assert coreset.data.x.shape == (3, split().shape[0], 64)
    assert bool(torch.isfinite(coreset.data.x).all())
    assert not torch.isin(coreset.data.x.flatten(), split().train.dense().x.flatten()).all()  # something was learnt
    vocabulary = split().spec.element.vocabulary  # type: ignore[attr-defined]
    assert all(word in vocabulary for text in coreset.texts() for word in text.split())
    coreset.save(tmp_path / "c.safetensors")
    again = Coreset.load(tmp_path / "c.safetensors")
    assert again.texts() == coreset.texts()
    assert 0 <= attar.evaluate(attar.infer(again, draws=1, training=SHORT), split().test).accuracy <= 1


def test_labels_are_solved_for_sentences_of_the_user() -> None:
    coreset = attar.reduce(split(), "label-solve", per_class=2, training=SHORT)
    labels, *_ = solve(coreset.data.dense().x, split().train.dense(), [FIXED["ntk1"]], 1e-6)
    assert set(coreset.texts()) <= set(TEXTS)
    assert torch.allclose(coreset.data.y.double(), labels + 1 / 3, atol=1e-4)
