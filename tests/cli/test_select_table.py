"""`attar select` from tables that are read in parts."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attar.select import select
from tests.cli.conftest import Attar
from tests.tables import KEYS, X, parquet

ASKED = ("--features", "emb", "--label", "y", "--id", "key", "--part", 128)


def test_keys_ranks_scores_and_weights_are_written_and_nothing_else_is_left(attar: Attar, tmp_path: Path) -> None:
    source = parquet(tmp_path / "t")
    done = attar("select", source, *ASKED, "-m", "craig", "--fraction", 0.02, "-o", tmp_path / "picks.parquet")
    assert done.code == 0, done.err
    assert "18 picks from 900 rows in 9 parts of at most 128: 18 picks of each, then 18 of these" in done.out
    assert "forecast: " in done.out
    assert "2.0 GB allowed" in done.out
    assert "18 of 900 rows of " in done.out
    assert " forecast), weights worth" in done.out
    found = pq.read_table(tmp_path / "picks.parquet")
    assert found.column_names == ["key", "rank", "index", "score", "class", "weight"]
    assert found["rank"].to_pylist() == list(range(18))
    assert found["key"].to_pylist() == [KEYS[i] for i in found["index"].to_pylist()]
    assert sum(found["weight"].to_pylist()) == pytest.approx(900)
    expected = select(source, "craig", features="emb", label="y", id="key", part=128, fraction=0.02)
    assert found["index"].to_pylist() == expected.indices.tolist()
    assert json.loads(found.schema.metadata[b"recipe"])["method"] == "craig"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["picks.parquet", "t"]


def test_a_dry_run_says_parts_memory_and_time_and_writes_nothing(attar: Attar, tmp_path: Path) -> None:
    done = attar(
        "select", parquet(tmp_path / "t"), *ASKED, "-m", "k-center", "--size", 99, "--dry-run", "-o", tmp_path / "p.csv"
    )
    assert done.code == 0, done.err
    assert "99 picks from 900 rows in 9 parts of at most 128: each gives its share, about 11 picks" in done.out
    assert "MB of memory in each process (2.0 GB allowed), about " in done.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]


def test_arrays_need_no_names_of_columns(attar: Attar, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    done = attar("select", tmp_path / "x.npy", "-m", "uniform", "--size", 9, "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 10


def test_columns_of_numbers_are_separated_by_commas(attar: Attar, tmp_path: Path) -> None:
    pq.write_table(
        pq.read_table(Path(parquet(tmp_path / "t")).parent / "0.parquet")
        .select(["y"])
        .append_column("a", [list(map(float, X[:300, 0]))])
        .append_column("b", [list(map(float, X[:300, 1]))]),
        tmp_path / "n.parquet",
    )
    done = attar(
        "select", tmp_path / "n.parquet", "--features", "a,b", "-m", "k-center", "--size", 5, "-o", tmp_path / "p.csv"
    )
    assert done.code == 0, done.err


def test_finished_jobs_stay_beside_the_output_when_a_row_is_bad(attar: Attar, tmp_path: Path) -> None:
    source, output = parquet(tmp_path / "t"), tmp_path / "p.csv"
    bad = pq.read_table(tmp_path / "t" / "2.parquet")
    rows = [*bad["emb"].to_pylist()[:-1], [0.0, float("nan"), 0.0, 0.0]]
    pq.write_table(
        bad.set_column(0, "emb", pa.array(rows, bad["emb"].type)), tmp_path / "t" / "2.parquet", row_group_size=100
    )
    done = attar("select", source, *ASKED, "-m", "k-center", "--size", 9, "-o", output)
    assert done.code == 2
    assert "holds NaN or Inf in emb: repair or drop that row; 8 of 9 parts are finished and kept in" in done.err
    assert (tmp_path / "p.csv.parts").is_dir()
    pq.write_table(bad, tmp_path / "t" / "2.parquet", row_group_size=100)
    assert attar("select", source, *ASKED, "-m", "k-center", "--size", 9, "-o", output).code == 0
    assert not (tmp_path / "p.csv.parts").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("digits", "--memory", "1GB"), "--memory is for tables that are read in parts"),
        (("digits", "--label", "y"), "name its features, too"),
        (("none/*.parquet", "--features", "emb"), "No file matches none/*.parquet"),
        (("memory://none/x.parquet", "--features", "emb"), "No file matches memory://none/x.parquet"),
        (("none/*.parquet", "--features", "emb", "--target", "y"), "has no --target: leave it out"),
        (("TABLE", "--features", "emb", "--memory", "10MB"), "A part of 64 rows needs about"),
        (("TABLE", "--features", "emb", "--engine", "ray", "--address", "127.0.0.1:9"), "No Ray cluster answers"),
    ],
)
def test_bad_requests_are_one_sentence(words: tuple[str, ...], message: str, attar: Attar, tmp_path: Path) -> None:
    given = [parquet(tmp_path / "t") if word == "TABLE" else word for word in words]
    done = attar("select", *given, "-m", "k-center", "--size", 3, "-o", tmp_path / "p.csv")
    assert done.code == 2
    assert message in " ".join(done.err.split())
