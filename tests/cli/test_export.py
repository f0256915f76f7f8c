"""`attar export`: the ending or the kind decides the format."""

from pathlib import Path

import numpy as np
import pytest

from attar.coreset import Coreset
from attar.data import load
from tests.cli.conftest import Attar
from tests.export.hub_stub import TOKEN, running


def test_export_by_suffix_or_kind(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    assert attar("export", coreset, tmp_path / "c.npz").code == 0
    assert (tmp_path / "c.npz").exists()
    done = attar("export", coreset, tmp_path / "images", "--kind", "folder")
    assert f"wrote {tmp_path / 'images'}" in done.out
    assert len(list((tmp_path / "images").glob("*/*.png"))) == 20
    assert attar("export", coreset, tmp_path / "c.xyz").code == 2


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_examples_are_named_by_their_rows_in_the_data(attar: Attar, coreset: Path, kind: str, tmp_path: Path) -> None:
    few, train = Coreset.load(coreset), load("digits").train
    assert few.indices is not None
    assert train.rows is not None
    path = tmp_path / f"c.{kind}"
    assert attar("export", coreset, path).code == 0
    rows = np.load(path)["rows"] if kind == "npz" else np.loadtxt(path, delimiter=",", skiprows=1, usecols=0, dtype=int)
    assert rows.tolist() == train.rows[few.indices].tolist()
    assert rows.tolist() != few.indices.tolist()


def test_a_dry_run_for_the_hub_shows_the_card_and_writes_nothing(
    attar: Attar, coreset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("datasets", reason="needs the extra hf")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with running() as hub:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.address)
        done = attar("export", coreset, "hf:me/few", "--dry-run")
        assert done.code == 0
        assert 'load_dataset("me/few"' in done.out
        assert f"would go to {hub.address}/datasets/me/few (which is new)" in done.out
        assert hub.writes == []
        assert attar("export", coreset, "hf:me/few", "--public").code == 0
        assert hub.private == {"me/few": False}


@pytest.mark.parametrize(
    "words", [["c.npz", "--dry-run"], ["c.npz", "--public"], ["hf:me/few", "--kind", "npz"], ["hf:few"]]
)
def test_options_of_the_hub_that_do_not_fit_are_refused(attar: Attar, coreset: Path, words: list[str]) -> None:
    assert attar("export", coreset, *words).code == 2
