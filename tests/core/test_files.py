"""Files are whole or not there, and nothing that cannot be read again is written."""

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from attar.core.errors import AttarError
from attar.core.files import atomic, inside, read_json, read_tensors, write_json, write_tensors, write_text
from tests.known import python


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_written_replaces_the_old_file(tmp_path: Path) -> None:
    write_text(tmp_path / "file.txt", "old")
    write_text(tmp_path / "file.txt", "new ä")
    assert (tmp_path / "file.txt").read_text(encoding="utf-8") == "new ä"
    assert names(tmp_path) == ["file.txt"]


def test_who_reads_the_old_file_reads_it_to_its_end(tmp_path: Path) -> None:
    write_text(tmp_path / "file.txt", "old")
    with (tmp_path / "file.txt").open() as reader:
        write_text(tmp_path / "file.txt", "new")
        assert reader.read() == "old"


def test_missing_folders_are_made(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "file.txt", "new")
    assert (tmp_path / "a" / "b" / "file.txt").read_text() == "new"


def test_the_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("")
    write_text(tmp_path / "ours", "")
    write_tensors(tmp_path / "tensors", {"x": torch.ones(1)}, {})
    assert len({stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}) == 1


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(
    error: type[BaseException], tmp_path: Path
) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail() -> None:
        with atomic(path) as part:
            part.write_text("half of the n")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file.txt"]


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with atomic(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
        assert part.parent.parent == path.parent, "elsewhere may be another disk, where a rename is a copy"
    assert path.read_text() == "new"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_keeps_the_old_file_and_says_so(small_disk: Path) -> None:
    path = small_disk / "tensors.safetensors"
    write_tensors(path, {"x": torch.ones(1000)}, {})
    for size in (20_000, 2_000_000):
        with pytest.raises(AttarError, match=r"Could not write .* free space on that disk.*; what is there"):
            write_tensors(path, {"x": torch.zeros(size)}, {})
        assert torch.equal(read_tensors(path)[0]["x"], torch.ones(1000))
        assert names(small_disk) == ["tensors.safetensors"]
    with pytest.raises(AttarError, match="No space left"):
        write_text(small_disk / "text", "a" * 100_000)
    assert names(small_disk) == ["tensors.safetensors"]


LIMITED = """
import resource, signal, sys, torch
from attar.core.files import write_tensors
from attar.core.errors import AttarError
write_tensors(sys.argv[1], {"x": torch.ones(10)}, {})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_tensors(sys.argv[1], {"x": torch.zeros(10_000)}, {})
except AttarError as error:
    print(error)
"""


def test_a_file_larger_than_the_system_allows_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "tensors.safetensors"
    out, err = python(LIMITED, path).communicate(timeout=600)
    assert "Could not write" in out, err
    assert torch.equal(read_tensors(path)[0]["x"], torch.ones(10))
    assert names(tmp_path) == ["tensors.safetensors"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    for target in (tmp_path / "file" / "below", Path("/proc/nowhere/file"), tmp_path / ("long" * 100)):
        with pytest.raises(AttarError, match="Could not write"):
            write_text(target, "new")
    (tmp_path / "folder").mkdir()
    with pytest.raises(AttarError, match=r"Could not write .*folder"):
        write_text(tmp_path / "folder", "new")
    assert names(tmp_path) == ["file", "folder"]


def test_json_comes_back(tmp_path: Path) -> None:
    value = {"a": [1, 2.5, None, True, "ä"], "b": {}}
    write_json(tmp_path / "value.json", value)
    assert read_json(tmp_path / "value.json") == value


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_json_with_a_number_that_is_not_finite_is_neither_written_nor_read(bad: float, tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    write_json(path, [1])
    with pytest.raises(AttarError, match="JSON holds finite numbers only"):
        write_json(path, {"a": [bad]})
    assert read_json(path) == [1]
    path.write_text(json.dumps([bad]))
    with pytest.raises(AttarError, match="is not JSON"):
        read_json(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"a": 1}}', b"[" * 100_000, b"1" * 5000])
def test_a_file_that_is_no_json_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "value.json").write_bytes(content)
    with pytest.raises(AttarError, match="is not JSON"):
        read_json(tmp_path / "value.json")


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    for read in (read_json, read_tensors):
        with pytest.raises(AttarError, match=r"There is no file .*nothing: check the path"):
            read(tmp_path / "nothing")
    with pytest.raises(AttarError, match="Could not read"):
        read_json(tmp_path)


def test_tensors_come_back_with_their_header(tmp_path: Path) -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    tensors = {
        "whole": whole,
        "view": whole[:, 1],  # shares its memory, and is not contiguous
        "turned": whole.T,
        "again": whole,
        "learnt": whole.clone().requires_grad_(),
        "number": torch.tensor(3),
        "flags": torch.tensor([True, False]),
        "bytes": torch.arange(5, dtype=torch.uint8),
        "wide": torch.tensor([1e300], dtype=torch.float64),
        "none": torch.zeros(0, 3),
    }
    write_tensors(tmp_path / "file", tensors, {"text": "ä \n"})
    read, header = read_tensors(tmp_path / "file")
    assert header == {"text": "ä \n"}
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(read[name], tensor.detach())
        assert read[name].dtype == tensor.dtype


def test_a_file_without_a_header_has_an_empty_one(tmp_path: Path) -> None:
    write_tensors(tmp_path / "file", {"x": torch.zeros(1)}, {})
    assert read_tensors(tmp_path / "file")[1] == {}


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_tensors_that_are_not_finite_are_neither_written_nor_read(bad: float, tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(AttarError, match="NaN or Inf in 'x'"):
        write_tensors(path, {"x": torch.tensor([1.0, bad])}, {})
    assert not names(tmp_path)
    save_file({"x": torch.tensor([1.0, bad])}, path)
    with pytest.raises(AttarError, match="NaN or Inf in 'x'"):
        read_tensors(path)


def test_tensors_read_do_not_change_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_tensors(path, {"x": torch.ones(100_000)}, {})
    read, _ = read_tensors(path)
    with path.open("rb+") as file:
        file.write(bytes(path.stat().st_size))
    assert torch.equal(read["x"], torch.ones(100_000))


def test_a_type_too_narrow_to_check_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="float16 or wider"):
        write_tensors(tmp_path / "file", {"x": torch.zeros(4).to(torch.float8_e4m3fn)}, {})


def test_a_name_from_a_file_leads_to_no_other_folder(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    (folder / "runs").mkdir(parents=True)
    (folder / "runs" / "one").write_text("1")
    (tmp_path / "secret").write_text("2")
    (folder / "link").symlink_to(tmp_path / "secret")
    assert inside(folder, "runs/one") == folder / "runs" / "one"
    for name in ("../secret", str(tmp_path / "secret"), "link", "runs", "none", "x" * 5000, "a\0b"):
        assert inside(folder, name) is None
