from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from attar.core.aside import read_cost, write_cost
from attar.core.checksum import require_intact
from attar.core.cost import Cost
from attar.core.errors import DamagedFile
from attar.core.files import open_tensors, read_tensors, write_tensors
from tests.known import generator

TENSORS = {"x": torch.randn(20, 3, generator=generator()), "b": torch.arange(5).byte(), "y": torch.arange(20)}
TEXT = {"recipe": "0" * 40, "format": "a", "attar": "0" * 40}


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_tensors(path, TENSORS, TEXT)
    whole = path.read_bytes()
    for place in range(len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 1 << place % 8
        path.write_bytes(broken)
        with pytest.raises(DamagedFile):
            read_tensors(path)


def test_a_changed_header_is_found_without_reading_the_tensors(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_tensors(path, TENSORS, TEXT)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"format":"a"', b'"format":"b"'))
    with pytest.raises(DamagedFile, match="its header changed after it was written"), open_tensors(path):
        pass
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with open_tensors(path):
        pass
    with pytest.raises(DamagedFile, match="its content changed after it was written"):
        read_tensors(path)


def test_files_are_safetensors_as_others_read_them(tmp_path: Path) -> None:
    write_tensors(tmp_path / "a", TENSORS, TEXT)
    with safe_open(tmp_path / "a", framework="pt") as file:
        assert {name: file.get_tensor(name).tolist() for name in TENSORS} == {n: t.tolist() for n, t in TENSORS.items()}
        assert TEXT.items() <= file.metadata().items()


def test_files_of_other_programs_have_no_checksum_and_are_read(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "a", metadata={"format": "pt"})
    assert not require_intact(tmp_path / "a", content=True)
    assert read_tensors(tmp_path / "a")[1] == {"format": "pt"}


def test_the_same_content_is_the_same_bytes_in_whatever_order_it_comes(tmp_path: Path) -> None:
    """As that of sets, which is another in every process."""
    names = [f"name{k}" for k in range(20)]
    for order in (names, names[::-1], names[7:] + names[:7]):
        write_tensors(tmp_path / order[0], {name: torch.ones(3) for name in order}, {name: name for name in order})
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_the_cost_beside_a_file_is_of_its_content(tmp_path: Path) -> None:
    write_cost(tmp_path / "a", "content", Cost(1.0, 2.0, 3))
    assert read_cost(tmp_path / "a", "content") == Cost(1.0, 2.0, 3)
    assert read_cost(tmp_path / "a", "other") is None
    assert read_cost(tmp_path / "b", "content") is None
    for text in ("[]", "{", '{"of": "content", "wall": "much"}', "{}"):
        (tmp_path / "a.cost").write_text(text)
        assert read_cost(tmp_path / "a", "content") is None
