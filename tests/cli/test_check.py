import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

from attar.board.results import score_path
from tests.board.boards import board
from tests.cli.conftest import Attar


def test_files_are_named_with_what_they_are(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    save_file({"x": torch.ones(2)}, tmp_path / "other.safetensors")
    (tmp_path / "study.json").write_text("{}")
    shutil.copy(coreset, tmp_path / "c.safetensors")
    said = attar("check", tmp_path)
    assert said.code == 0, said.err
    lines = [line.removeprefix(f"{tmp_path}/") for line in said.out.splitlines()]
    assert lines == [
        "c.safetensors: coreset, intact",
        "other.safetensors: tensors, readable (it has no checksum)",
        "study.json: JSON, readable (it has no checksum)",
    ]


def test_every_damaged_file_is_named_and_the_others_are_checked(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    whole = coreset.read_bytes()
    (tmp_path / "a.safetensors").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    (tmp_path / "b.safetensors").write_bytes(whole[:-1])
    (tmp_path / "c.json").write_text("{")
    (tmp_path / "d.safetensors").write_bytes(whole)
    said = attar("check", *sorted(tmp_path.iterdir()), tmp_path / "nothing")
    assert said.code == 2
    assert "a.safetensors is damaged (its content changed after it was written): copy it again" in said.err
    assert "b.safetensors is not a complete safetensors file" in said.err
    assert "c.json is not JSON" in said.err
    assert "There is no file" in said.err
    assert "4 of 5 files cannot be used" in said.err
    assert "d.safetensors: coreset, intact" in said.out


def test_a_folder_without_files_is_refused(attar: Attar, tmp_path: Path) -> None:
    said = attar("check", tmp_path)
    assert said.code == 2
    assert "holds no .safetensors or .json file" in said.err


def test_records_of_the_board_are_checked_too(attar: Attar, tmp_path: Path) -> None:
    done = attar("check", board(tmp_path))
    assert done.code == 0
    assert done.out.count("record of the board, intact") == 9
    path = score_path(tmp_path, "digits--dm-1")
    path.write_text(path.read_text().replace("0.7", "0.8"))
    done = attar("check", tmp_path)
    assert done.code == 2
    assert "digits--dm-1.json was changed after it was written" in done.err
