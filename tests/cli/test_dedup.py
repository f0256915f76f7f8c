"""`attar dedup`."""

from pathlib import Path

import numpy as np

from tests.cli.conftest import Attar
from tests.tables import X


def test_clusters_are_reported_and_written(attar: Attar, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.concatenate([X[:40], X[:3], X[:3] + 1e-4]))
    done = attar("dedup", tmp_path / "x.npy", "--distance", 0.001, "-o", tmp_path / "c.csv")
    assert done.code == 0, done.err
    assert "40 of 46 examples of" in done.out
    assert "are kept: 3 equal an earlier one, 3 are near one" in done.out
    assert "3 clusters of several examples, with 3, 3, 3" in done.out
    assert (tmp_path / "c.csv").read_text().splitlines()[41] == "40,0,False"


def test_a_table_is_loaded_as_for_other_commands(attar: Attar, tmp_path: Path) -> None:
    lines = [f"{k % 5},{'ab'[k % 2]},{'uv'[k % 2]}" for k in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["size,job,kind", *lines]))
    done = attar(
        "dedup", tmp_path / "t.csv", "--target", "kind", "--columns", "size:category", "-o", tmp_path / "c.csv"
    )
    assert done.code == 0, done.err
    assert "columns: category: size (5), job (2)" in done.out
    assert "10 of 44 examples of" in done.out  # of the training set
    refused = attar("dedup", tmp_path / "x.npy", "--target", "kind", "-o", tmp_path / "c.csv")
    assert refused.code == 2
    assert "A table that is read in parts has no --target: leave it out." in refused.err


def test_bad_input_is_one_sentence(attar: Attar, tmp_path: Path) -> None:
    for words, message in (
        (("none/*.parquet", "--features", "emb"), "No file matches"),
        (("digits", "-o", tmp_path / "c.txt"), "use a name that ends in .csv or .parquet"),
        (("digits", "--id", "key"), "name its features, too"),
    ):
        done = attar("dedup", "-o", tmp_path / "c.csv", *words)
        assert done.code == 2
        assert message in " ".join(done.err.split())
