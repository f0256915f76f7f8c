"""`attar show`: images, tables and texts, in a terminal and elsewhere."""

import errno
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import attar as library
from tests.cli.conftest import Attar, in_terminal

STYLE = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]")


def uniform(data: object, path: Path) -> Path:
    library.reduce(library.load(data), "uniform", per_class=4).save(path)
    return path


def test_a_terminal_shows_every_class_in_lines_of_whole_images(coreset: Path) -> None:
    text = STYLE.sub("", in_terminal(80, "show", coreset)).replace("\r", "")
    assert "20 examples of digits by uniform" in text
    blocks = [line for line in text.splitlines() if "▀" in line]
    assert len(blocks) == 10 * 4  # 8 rows of pixels, two a line
    assert {line.rstrip() for line in blocks} == {"▀" * 8 + "  " + "▀" * 8}


def test_images_that_are_wider_than_the_terminal_are_shrunk(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (40, 1, 60, 120), dtype=np.uint8)
    path = uniform((x, np.arange(40) % 2), tmp_path / "c.safetensors")
    text = STYLE.sub("", in_terminal(80, "show", path)).replace("\r", "")
    blocks = [line.rstrip() for line in text.splitlines() if "▀" in line]
    assert set(blocks) == {"  ".join(["▀" * 18] * 4)}
    assert len(blocks) < 2 * 10


def test_piped_images_are_a_table_of_rows(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    done = attar("show", coreset, "--png", tmp_path / "sheet.png")
    assert "20 examples of digits by uniform" in done.out
    assert "▀" not in done.out
    rows = library.Coreset.load(coreset).rows
    assert rows is not None
    assert re.search(rf"^ +0 +2 +{rows[0]}, {rows[1]} *$", done.out, flags=re.MULTILINE)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert min(sheet.size) > 20


def test_feature_vectors_are_a_table_with_the_names_of_columns(attar: Attar, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    assert attar("reduce", table, "-m", "uniform", "-n", "2", "-o", path).code == 0
    shown = attar("show", path).out
    assert re.search(r"class +a +b", shown)
    assert "more" not in shown
    assert attar("show", path, "--png", tmp_path / "s.png").code == 2


def test_columns_that_do_not_fit_are_counted(attar: Attar, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)
    shown = attar("show", uniform((x, np.arange(40) % 2), tmp_path / "c.safetensors")).out
    more = re.search(r"(\d+) more of 30 columns", shown)
    assert more is not None
    left = 30 - int(more[1])
    assert f"x{left - 1}" in shown
    assert f"x{left}" not in shown
    assert max(map(len, shown.splitlines())) <= 200  # the width of the terminal
    assert left > 16


def test_texts_are_shown_as_words(attar: Attar, tmp_path: Path) -> None:
    texts = [f"a {'good' if k % 2 else 'bad'} film {k}" for k in range(60)]
    path = uniform((texts, ["up" if k % 2 else "down" for k in range(60)]), tmp_path / "c.safetensors")
    shown = attar("show", path).out.splitlines()
    assert shown.count("down") == shown.count("up") == 1
    assert sum(line.startswith("  a bad film") for line in shown) == 4
    assert sum(line.startswith("  a good film") for line in shown) == 4


def test_text_from_files_is_printed_as_it_is_but_for_control_characters(attar: Attar, tmp_path: Path) -> None:
    table, path = tmp_path / "t.csv", tmp_path / "c[/x].safetensors"
    names = ("[/red]x", "y\x1b[2J")
    table.write_text("a\x07,b,label\n" + "".join(f"{k % 9},{k % 7},{names[k % 2]}\n" for k in range(40)))
    assert attar("reduce", table, "-m", "uniform", "-n", "1", "-o", path).code == 0
    shown = attar("show", path).out
    assert "[/red]x" in shown
    assert "y\\x1b[2J" in shown
    assert "a\\x07" in shown
    assert not {"\x1b", "\x07"} & set(shown)


def test_a_full_disk_leaves_the_old_sheet(
    attar: Attar, coreset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, path: Path, format: str) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "sheet.xyz").write_bytes(b"old")
    monkeypatch.setattr(Image.Image, "save", full)
    done = attar("show", coreset, "--png", tmp_path / "sheet.xyz")
    assert done.code == 2
    assert "free space on that disk, or choose another place; what is there is unchanged." in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["sheet.xyz"]
    assert (tmp_path / "sheet.xyz").read_bytes() == b"old"


def test_rows_of_a_table_are_shown_as_values_that_fit_the_terminal(attar: Attar, tmp_path: Path) -> None:
    table, path = tmp_path / "t.csv", tmp_path / "c.safetensors"
    jobs = ("cook", "clerk", "")
    lines = [f"{20 + k % 9},{jobs[k % 3]},{k % 5 / 4},{'xy'[k % 2]}" for k in range(60)]
    table.write_text("age,job,a name that is longer than twenty characters,label\n" + "\n".join(lines) + "\n")
    done = attar("reduce", table, "-m", "dm", "-n", "2", "--steps", "2", "--columns", "age:numeric", "-o", path)
    assert done.code == 0
    assert "columns: 2 numeric; category: job (2)" in done.out
    shown = attar("show", path).out
    assert re.search(r"class +age +job +a name that is long", shown)
    assert re.search(r"[xy] +2\d +(cook|clerk|other)? +", shown)
    assert not re.search(r"[xy] +2\d\.", shown)  # ages are whole numbers
    narrow = re.sub(r"\x1b\[[\d;]*m", "", in_terminal(24, "show", path))
    assert re.search(r"[12] more of 3 columns", narrow)
    assert all(len(line) <= 24 for line in narrow.splitlines() if line.startswith((" class", " x", " y")))
