"""`attar report`: a page from a study or a coreset, which remembers its data."""

import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from attar import Coreset
from attar.data.split import Origin
from attar.infer import infer
from attar.study import Study
from tests.cli.conftest import Attar

FEW = ("--evaluations", "1", "--draws", "1")


@contextmanager
def terminal(answer: str) -> Iterator[None]:
    """A real terminal as standard input, in which somebody types."""
    keyboard, screen = pty.openpty()
    os.write(keyboard, f"{answer}\n".encode())
    with os.fdopen(screen) as typed, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", typed)
        yield
    os.close(keyboard)


@pytest.fixture
def of_table(attar: Attar, tmp_path: Path) -> Path:
    """A coreset of a table that is scaled by zca, with a label column of its own name."""
    table, path = tmp_path / "table.csv", tmp_path / "c.safetensors"
    table.write_text("a,b,kind\n" + "".join(f"{k % 5},{k % 7},{'xy'[k % 2]}\n" for k in range(60)))
    words = ("--target", "kind", "--scaling", "zca", "-m", "uniform", "-n", "2", "--train-steps", "5")
    assert attar("reduce", table, *words, "-o", path).code == 0
    return path


def test_report_from_a_study_and_from_a_coreset(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    done = attar("report", coreset, "-o", page, "--evaluations", "2", "--draws", "1")
    assert done.code == 0
    assert str(page.resolve()) in done.out
    assert "<svg" in page.read_text()
    (folder,) = (tmp_path / "r-files").iterdir()  # one for each coreset that was reported
    study = Study.load(folder / "study.json")
    same = ["uniform", "uniform", "herding", "herding", "full", "full"]
    assert [run.method for run in study.runs] == [*same, "full-converged"]
    assert "from converged full data" in " ".join(page.read_text().split())
    assert attar("report", coreset, "-o", tmp_path / "s.html", "--no-converged", *FEW).code == 0
    (folder,) = (tmp_path / "s-files").iterdir()
    assert [run.method for run in Study.load(folder / "study.json").runs] == same[::2]
    assert attar("report", folder, "-o", tmp_path / "again.html").code == 0
    assert attar("report", tmp_path / "nothing.json").code == 2


def test_what_a_coreset_file_says_never_names_a_place_outside(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    loaded = Coreset.load(coreset)
    evil = tmp_path / "a" / "b" / "evil.safetensors"
    replace(loaded, recipe=replace(loaded.recipe, method="../../../evil")).save(evil)
    done = attar("report", evil, "--data", "digits", "-o", tmp_path / "a" / "b" / "r.html")
    assert done.code == 2
    assert "Unknown method" in done.err
    assert sorted(path.name for path in tmp_path.rglob("*evil*")) == ["evil.safetensors", "evil.safetensors.cost"]


def test_an_experts_label_goes_from_inference_to_the_page(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    loaded, files = Coreset.load(coreset), [tmp_path / name for name in ("e.safetensors", "a.json", "r.html")]
    infer(loaded, draws=1, start="experts", experts=infer(loaded, draws=2).theta).save(files[0])
    attar("evaluate", files[0], "digits", "-o", files[1])
    attar("report", coreset, "-a", files[1], "-o", files[2], "--evaluations", "1", "--draws", "1")
    page = files[2].read_text()
    assert '<span class="label">started from full-data experts</span>' in page
    assert page.count("leaks the full data") == 1  # of that posterior, and not of the study beside it


def test_a_file_that_names_a_path_is_believed_only_if_the_user_agrees(
    attar: Attar, of_table: Path, tmp_path: Path
) -> None:
    table, page = tmp_path / "table.csv", tmp_path / "r.html"
    alone = attar("report", of_table, *FEW, "-o", page)
    assert alone.code == 2
    assert f"says that it was made from {table}: if you trust that, give it with --data" in alone.err
    evaluated = attar("evaluate", of_table)
    assert evaluated.code == 2
    assert "give it with DATA" in evaluated.err
    with terminal("n"):
        assert "Nothing was loaded" in attar("report", of_table, *FEW, "-o", page).err
    assert not page.exists()
    with terminal("y"):
        agreed = attar("report", of_table, *FEW, "-o", page)
    assert agreed.code == 0
    assert f"made from {table}. Load that?" in agreed.out.replace("\n", "")
    study = Study.load(next((tmp_path / "r-files").iterdir()) / "study.json")
    clean = {"imbalance": 1.0, "flip": 0.0}
    assert study.config["loading"] == {"target": "kind", "scaling": "zca", "val": 0.1, "test": 0.2, "seed": 0, **clean}
    with terminal("y"):
        assert "test examples" in attar("evaluate", of_table, "--seeds", "0", "--draws", "1").out


def test_a_posterior_remembers_its_data_too(attar: Attar, of_table: Path, tmp_path: Path) -> None:
    posterior, table = tmp_path / "p.safetensors", tmp_path / "table.csv"
    assert attar("infer", of_table, "-o", posterior, "--draws", "1").code == 0
    assert f"made from {table}: if you trust that, give it with DATA" in attar("evaluate", posterior).err
    with terminal("y"):
        assert "12 test examples" in attar("evaluate", posterior).out
    moved = table.rename(tmp_path / "elsewhere.csv")
    assert "12 test examples" in attar("evaluate", posterior, moved).out  # the column of labels is remembered
    assert attar("evaluate", posterior, moved, "--target", "a").code == 2


def test_data_that_the_user_names_is_loaded_as_it_was(attar: Attar, of_table: Path, tmp_path: Path) -> None:
    moved = (tmp_path / "table.csv").rename(tmp_path / "elsewhere.csv")
    done = attar("report", of_table, "--data", moved, *FEW, "-o", tmp_path / "r.html")
    assert done.code == 0  # warnings are errors here: it is the same data under the same scaling
    assert attar("evaluate", of_table, moved, "--seeds", "0", "--draws", "1").code == 0
    assert attar("evaluate", of_table, moved, "--seeds", "0", "--draws", "1", "--target", "a").code == 2
    for words, flag in ((("report", of_table), "--data"), (("evaluate", of_table), "DATA")):
        assert f"give that with {flag} too" in attar(*words, "--test", moved).err
    done = attar("report", of_table, "--data", moved, "--test", moved, *FEW, "-o", tmp_path / "t.html")
    assert "made from other training data" in done.err  # which has no test set cut from it now


def test_a_path_in_a_file_cannot_speak_to_the_terminal(attar: Attar, of_table: Path, tmp_path: Path) -> None:
    loaded, path = Coreset.load(of_table), tmp_path / "evil.safetensors"
    origin = Origin("\x1b[2Jharmless.csv")
    replace(loaded, recipe=replace(loaded.recipe, origin=origin)).save(path)
    with terminal("n"):
        asked = attar("report", path, *FEW, "-o", tmp_path / "r.html")
    assert "made from \\x1b[2Jharmless.csv. Load that?" in asked.out
    assert "\x1b[2J" not in asked.out + asked.err


def test_a_known_data_set_needs_not_be_named(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    assert "359 test examples" in attar("evaluate", coreset, "--seeds", "0", "--draws", "1").out
    posterior = tmp_path / "p.safetensors"
    attar("infer", coreset, "-o", posterior, "--draws", "1")
    assert "359 test examples" in attar("evaluate", posterior).out


def test_a_coreset_of_arrays_asks_for_its_data(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    loaded, path = Coreset.load(coreset), tmp_path / "arrays.safetensors"
    data = replace(loaded.data, spec=replace(loaded.data.spec, name="data"))
    replace(loaded, data=data, recipe=replace(loaded.recipe, data="data", origin=None)).save(path)
    for words in (("report", path), ("evaluate", path)):
        done = attar(*words)
        assert done.code == 2
        assert "does not say where its data is" in done.err


def test_a_device_that_is_not_there_is_refused(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    done = attar("report", coreset, "--device", "cuda:9", "-o", tmp_path / "r.html")
    assert done.code == 2
    assert "use --device cpu" in done.err
