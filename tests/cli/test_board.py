"""`attar board`: the page, or one sentence."""

from pathlib import Path

from attar.board.results import score_path
from tests.board.boards import board
from tests.cli.conftest import Attar


def test_the_page_is_written(attar: Attar, tmp_path: Path) -> None:
    done = attar("board", board(tmp_path / "results"), "-o", tmp_path / "b.html")
    assert done.code == 0, done.err
    assert f"board: {tmp_path / 'b.html'}" in done.out
    assert "6 scores on 2 problems" in (tmp_path / "b.html").read_text()


def test_an_edited_score_is_one_sentence_and_no_page(attar: Attar, tmp_path: Path) -> None:
    path = score_path(board(tmp_path / "results"), "digits--dm-1")
    path.write_text(path.read_text().replace("0.7", "0.8"))
    done = attar("board", tmp_path / "results", "-o", tmp_path / "b.html")
    assert done.code == 2
    assert "digits--dm-1.json was changed after it was written" in done.err
    assert not (tmp_path / "b.html").exists()
    assert "holds no problems" in attar("board", tmp_path / "nowhere").err
