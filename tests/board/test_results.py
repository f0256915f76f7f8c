from importlib import import_module
from pathlib import Path

import pytest

from attar.board import Results
from attar.board.records import write_record
from attar.board.results import score_path
from attar.board.score import ADAPTER
from attar.core.errors import AttarError
from tests.board.boards import board, judged, problem


def test_a_board_is_read_without_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board(tmp_path)
    monkeypatch.setattr(import_module("attar.board.problem"), "load", None)
    found = Results.read(tmp_path)
    assert sorted(found.problems) == ["digits", "digits-wide"]
    assert len(found.scores) == 6
    assert [score.method for score in found.of("digits", 2)] == ["uniform"]
    reference = found.reference("digits")
    assert reference is not None
    assert reference.rising
    assert found.reference("digits-wide") is None


def test_gains_are_over_random_subsets_of_the_same_size_and_problem(tmp_path: Path) -> None:
    found = Results.read(board(tmp_path))
    gains = {score.method: found.gain(score) for score in found.of("digits", 1)}
    assert gains["uniform"] is None
    assert gains["dm"] is not None
    assert gains["herding"] is not None
    assert gains["dm"].order == "above"
    assert gains["herding"].order == "not distinguishable"


def test_an_edited_score_is_a_clear_error_and_stays(tmp_path: Path) -> None:
    path = score_path(board(tmp_path), "digits--dm-1")
    path.write_text(path.read_text().replace('"accuracy": 0.7,', '"accuracy": 0.9,'))
    with pytest.raises(AttarError, match=r"digits--dm-1\.json was changed after it was written: restore it"):
        Results.read(tmp_path)
    assert path.exists()


def test_a_score_of_another_version_of_its_problem_is_refused(tmp_path: Path) -> None:
    board(tmp_path)
    problem(tmp_path, draws=3)
    with pytest.raises(
        AttarError, match="was judged on another version of the problem digits: judge the coreset again"
    ):
        Results.read(tmp_path)


def test_a_reference_of_another_version_of_its_problem_is_refused(tmp_path: Path) -> None:
    board(tmp_path)
    for path in (tmp_path / "scores").iterdir():
        path.unlink()
    problem(tmp_path, draws=3)
    with pytest.raises(AttarError, match=r"references/digits\.json was judged on another version .* make it again"):
        Results.read(tmp_path)


def test_a_score_without_its_problem_or_under_another_name_is_refused(tmp_path: Path) -> None:
    made = problem(tmp_path)
    write_record(score_path(tmp_path, "other"), ADAPTER, judged(made, "dm", [0.5]))
    with pytest.raises(AttarError, match=r"other\.json holds the score digits--dm-1"):
        Results.read(tmp_path)
    (tmp_path / "problems" / "digits.json").unlink()
    problem(tmp_path, "another")
    with pytest.raises(AttarError, match="about the problem 'digits', which is not there"):
        Results.read(tmp_path)


def test_a_folder_without_problems_is_no_board(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="holds no problems"):
        Results.read(tmp_path)
    with pytest.raises(AttarError, match="did you mean 'digits'"):
        Results.read(board(tmp_path)).problem("digit")
