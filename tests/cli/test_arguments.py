"""Texts on the command line: loading, the terminal and the report."""

import html
from pathlib import Path

import pytest

from attar.coreset import Coreset
from tests.cli.conftest import Attar
from tests.test_texts import LABELS, TEXTS


@pytest.fixture
def films(tmp_path: Path) -> Path:
    path = tmp_path / "films.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for text, label in zip(TEXTS, LABELS, strict=True)))
    return path


@pytest.mark.parametrize(("name", "options"), [("herding", []), ("dm", ["--steps", "2"])])
def test_the_terminal_and_the_report_show_sentences(
    name: str, options: list[str], films: Path, attar: Attar, tmp_path: Path
) -> None:
    file, page = tmp_path / "c.safetensors", tmp_path / "page.html"
    made = attar("reduce", films, "-m", name, "-n", 2, "--length", 9, "-o", file, "--train-steps", 20, *options)
    assert made.code == 0, made.err
    coreset = Coreset.load(file)
    assert coreset.recipe.origin is not None
    assert coreset.recipe.origin.length == 9
    shown = attar("show", file).out.splitlines()
    for text in coreset.texts():
        assert f"  {text}" in shown
    assert attar("evaluate", file, films, "--seeds", "0", "--draws", 1).code == 0
    assert attar("report", file, "--data", films, "-o", page, "--evaluations", 1, "--draws", 1).code == 0
    words = html.unescape(page.read_text())
    for text in coreset.texts():
        assert text in words


def test_vectors_are_an_option_of_every_command_that_loads_data(films: Path, attar: Attar, tmp_path: Path) -> None:
    vectors, file = tmp_path / "v.txt", tmp_path / "c.safetensors"
    vectors.write_text("film 1 0 0\ngood 0 1 0\nbad 0 0 1\n")
    missing = "of the running words) have no vector in v.txt: they get hashed vectors"
    made = attar("reduce", films, "-m", "uniform", "--vectors", vectors, "--train-steps", 2, "-o", file)
    assert made.code == 0
    assert missing in made.err
    assert Coreset.load(file).data.spec.transform.tensors()["table"].shape[1] == 3
    scored = attar("evaluate", file, films, "--seeds", "0", "--draws", 1)
    assert scored.code == 0
    assert missing not in scored.err  # the coreset has its vectors
    picked = attar("select", films, "-m", "uniform", "-n", 1, "--vectors", vectors, "-o", tmp_path / "p.csv")
    assert missing in picked.err
    options = ["--methods", "uniform", "-n", 1, "--seeds", 0, "--draws", 1, "--no-baselines", "--train-steps", 2]
    compared = attar("compare", films, *options, "--vectors", vectors, "--length", 5, "-o", tmp_path / "study")
    assert compared.code == 0
    assert missing in compared.err
    wrong = attar("reduce", films, "-m", "uniform", "--vectors", tmp_path / "none.txt")
    assert wrong.code == 2
    assert "cannot be read (No such file or directory): check the path" in wrong.err
