"""`attar continual` on digits."""

from pathlib import Path

import numpy as np

from attar.continual import Continual
from tests.cli.conftest import Attar
from tests.known import digits

TINY = ["--seeds", "0,1", "-n", "2", "--network", "mlp-d1w8", "--train-steps", "20", "--steps", "1"]


def test_the_command_writes_results_table_and_page_and_says_what_it_does(attar: Attar, tmp_path: Path) -> None:
    done = attar("continual", "digits", "--stages", 2, "-m", "dm", "-o", tmp_path / "c", *TINY)
    assert done.code == 0, done.err
    assert {path.name for path in (tmp_path / "c").iterdir()} >= {"continual.json", "continual.csv", "report.html"}
    assert "runs: 8 of 8" in done.err
    assert "on validation" in done.err
    assert "forgetting" in done.out
    again = attar("continual", "digits", "--stages", 2, "-m", "dm", "-o", tmp_path / "c", *TINY)
    assert again.out == done.out
    assert attar("report", tmp_path / "c", "-o", tmp_path / "p.html").code == 0
    assert (tmp_path / "p.html").read_text() == (tmp_path / "c" / "report.html").read_text()


def test_several_data_sets_are_stages(attar: Attar, tmp_path: Path) -> None:
    train = digits().train
    np.savez(tmp_path / "more.npz", x=train.spec.stored(train.x).numpy(), y=train.y.numpy())
    words = f"digits,{tmp_path / 'more.npz'}", "-m", "uniform", "--no-baselines", "-o", tmp_path / "c"
    done = attar("continual", *words, *TINY)
    assert done.code == 0, done.err
    assert [stage.name for stage in Continual.load(tmp_path / "c" / "continual.json").stages] == ["digits", "more"]


def test_bad_input_is_one_sentence(attar: Attar, tmp_path: Path) -> None:
    for words, sentence in (
        (["digits", "--stages", 3], "choose the number of stages from 1, 2, 5"),
        (["digits", "-n", 500], "per class were asked for: ask for fewer"),
        ([], "Give the data, such as `attar continual digits"),
        (["digits", "--regime", "both"], "regime"),
    ):
        failed = attar("continual", *words, "-o", tmp_path / "c")
        assert (failed.code, failed.err.count("\n")) == (2, 1), failed.err
        assert sentence in failed.err
    assert not (tmp_path / "c").exists()
