"""Duplicates: equal ones, near ones, and what is written of them."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import attar
from attar.core.errors import AttarError
from tests.tables import KEYS, X, parquet


def test_equal_examples_are_one_cluster_that_keeps_the_first() -> None:
    x = np.array([[0.0, 1], [2, 3], [-0.0, 1], [2, 3.5], [2, 3]], dtype=np.float32)
    found = attar.dedup(x)
    assert found.clusters.tolist() == [0, 1, 0, 3, 1]  # zeros of both signs are equal
    assert found.kept.tolist() == [0, 1, 3]
    assert (found.exact, found.near, found.sizes) == (2, 0, [2, 2])


@pytest.mark.parametrize("exact", [0, 4096])
def test_near_examples_are_linked_by_chains(exact: int) -> None:
    if not exact:
        pytest.importorskip("usearch", reason="usearch is an extra: pip install 'attar[ann]'")
    x = torch.tensor([[0.0], [5], [0.1], [0.2], [5.05], [9], [0.0]])
    found = attar.dedup(x, distance=0.11, exact=exact)
    assert found.clusters.tolist() == [0, 1, 0, 0, 1, 5, 0]
    assert (found.exact, found.near) == (1, 3)
    assert attar.dedup(x, distance=0.01, exact=exact).near == 0


def test_planted_duplicates_of_a_table_are_found_with_their_keys(tmp_path: Path) -> None:
    pattern = parquet(tmp_path / "t")
    twice = pq.read_table(tmp_path / "t" / "0.parquet")
    shifted = pa.array([list(map(float, row + 1e-4)) for row in X[:50]], twice["emb"].type)
    more = pa.table({"emb": shifted, "y": ["class 0"] * 50, "key": [f"copy {k}" for k in range(50)]})
    pq.write_table(more, tmp_path / "t" / "3.parquet")
    found = attar.dedup(pattern, features="emb", id="key", distance=1e-3)
    assert len(found.kept) == 900
    assert (found.exact, found.near) == (0, 50)
    assert found.clusters[900:].tolist() == list(range(50))
    found.save(tmp_path / "c.csv")
    with (tmp_path / "c.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[901] == {"key": "copy 1", "cluster": KEYS[1], "kept": "False"}
    found.save(tmp_path / "c.parquet")
    assert pq.read_table(tmp_path / "c.parquet")["kept"].to_pylist().count(True) == 900


def test_data_sets_are_compared_as_loaded() -> None:
    split = attar.load("digits")
    doubled = attar.Data(torch.cat([split.train.x[:30]] * 2), torch.cat([split.train.y[:30]] * 2))
    assert attar.dedup(doubled).kept.tolist() == list(range(30))


@pytest.mark.parametrize(
    ("data", "asked", "message"),
    [
        (np.zeros((3, 2)), {"distance": 0.0}, "must be above 0, got 0.0"),
        (np.full((3, 2), np.nan), {}, "example 0 hold NaN or Inf"),
        (np.zeros(3), {}, "give one row of numbers per example"),
    ],
)
def test_bad_input_is_one_sentence(data: np.ndarray, asked: dict[str, float], message: str, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=message):
        attar.dedup(data, **asked)


def test_texts_of_a_table_are_refused_and_so_are_other_endings(tmp_path: Path) -> None:
    pattern = parquet(tmp_path)
    with pytest.raises(AttarError, match="has texts: give embeddings"):
        attar.dedup(pattern, features="key")
    with pytest.raises(AttarError, match=r"use a name that ends in .csv or .parquet"):
        attar.dedup(X[:5]).save(tmp_path / "x.txt")
