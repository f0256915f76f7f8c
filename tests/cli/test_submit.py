"""`attar submit`: a score, or one sentence."""

import json
from pathlib import Path

from tests.board.boards import problem, saved
from tests.cli.conftest import Attar


def test_files_of_several_seeds_become_one_score(attar: Attar, tmp_path: Path) -> None:
    problem(tmp_path / "results")
    files = saved(tmp_path, (0, 1, 2))
    done = attar("submit", *files, "--results", tmp_path / "results", "--problem", "digits", "--name", "mine")
    assert done.code == 0, done.err
    assert "mine, 1 per class of digits, honest: accuracy" in done.out
    assert "8 of 8" not in done.err
    assert "3 of 3: uniform, seed 2" in done.err
    score = json.loads((tmp_path / "results" / "scores" / "digits--mine-1.json").read_text())
    assert (score["method"], score["seeds"], score["per_class"]) == ("mine", [0, 1, 2], 1)


def test_repeated_seeds_and_other_sizes_are_one_sentence(attar: Attar, tmp_path: Path) -> None:
    problem(tmp_path / "results")
    (file,) = saved(tmp_path, (0,))
    where = "--results", tmp_path / "results"
    done = attar("submit", file, file, *where)
    assert done.code == 2
    assert "have the seed 0: give one coreset for each seed" in done.err
    (large,) = saved(tmp_path, (1,), per_class=4)
    assert "has 4 examples per class" in attar("submit", large, *where, "--problem", "digits").err
    assert not (tmp_path / "results" / "scores").exists()
