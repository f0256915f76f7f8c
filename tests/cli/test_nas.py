"""`attar nas` on digits."""

from pathlib import Path

from tests.cli.conftest import Attar

TINY = [
    "-n",
    "1",
    "--depths",
    "1",
    "--widths",
    "4,8",
    "--norms",
    "none",
    "--train-steps",
    "2",
    "--full-steps",
    "3",
    "--steps",
    "1",
]


def test_the_command_writes_results_table_and_page(attar: Attar, tmp_path: Path) -> None:
    done = attar("nas", "digits", "-m", "dm", "-o", tmp_path / "n", "--steps", 1, *TINY)
    assert done.code == 0, done.err
    assert {path.name for path in (tmp_path / "n").iterdir()} >= {"nas.json", "nas.csv", "report.html"}
    assert "networks: 20 of 20" in done.err
    for word in ("correlation", "top 10", "early-stopping", "full"):
        assert word in done.out
    assert attar("nas", "digits", "-m", "dm", "-o", tmp_path / "n", "--steps", 1, *TINY).out == done.out


def test_bad_input_is_one_sentence(attar: Attar, tmp_path: Path) -> None:
    for words, sentence in (
        (["digits", "--norms", "nun"], "Unknown norm 'nun'"),
        (["digits", "--depths", "a"], "depths must be whole numbers"),
        (["digits", "--full-steps", 10], "give more full steps"),
        ([], "Give the data to search on"),
    ):
        failed = attar("nas", *words, "-o", tmp_path / "n")
        assert (failed.code, failed.err.count("\n")) == (2, 1), failed.err
        assert sentence in failed.err
