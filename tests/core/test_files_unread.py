"""A file that is not there, one that is damaged and one that cannot be read now are told apart, and none is lost."""

import pickle
from pathlib import Path

import pytest
import torch

from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import read_json, read_tensors, set_aside, write_tensors
from tests.known import python

READERS = [read_json, read_tensors]


@pytest.mark.parametrize("read", READERS)
def test_what_is_not_there_is_missing(read: type, tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="There is no file"):
        read(tmp_path / "nothing")


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("target", ["nowhere", "link", "/proc/self/mem", "."])
def test_what_the_system_does_not_let_us_read_is_neither_missing_nor_damaged(
    read: type, target: str, tmp_path: Path
) -> None:
    # A disk that is not mounted, links in a circle, a file whose content is an input/output error, a folder.
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(AttarError, match=r"Could not read|is a folder or a device, not a file") as refused:
        read(tmp_path / "link")
    assert type(refused.value) is AttarError


FEW = """
import os, resource, sys
from attar.core.errors import AttarError
from attar.core.files import read_json, read_tensors
for read, path in ((read_json, sys.argv[1]), (read_tensors, sys.argv[2])):
    read(path)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    for free in range(4):
        held = []
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        for _ in range(free):
            os.close(held.pop())
        try:
            said = read(path) and "read"
        except AttarError as error:
            said = f"{type(error).__name__} {error}"
        for handle in held:
            os.close(handle)
        print(read.__name__, free, said)
"""


def test_too_many_open_files_are_neither_a_missing_nor_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text("[1]")
    write_tensors(tmp_path / "file", {"x": torch.ones(1)}, {})
    out, err = python(FEW, tmp_path / "file.json", tmp_path / "file").communicate(timeout=600)
    said = {tuple(line.split()[:2]): line.split(maxsplit=2)[2] for line in out.splitlines()}
    assert len(said) == 8, err
    for place in (("read_json", "0"), ("read_tensors", "0"), ("read_tensors", "1")):
        assert said[place].startswith("AttarError Could not read")
        assert "Too many open files" in said[place]
        assert "`ulimit -n`" in said[place]
    assert said["read_json", "1"] == said["read_tensors", "2"] == "read"


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 100])
def test_what_was_read_and_is_wrong_is_damaged(read: type, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DamagedFile, match=r"file is not") as refused:
        read(tmp_path / "file")
    assert refused.value.path == tmp_path / "file"


def test_damaged_files_are_kept_under_names_that_are_free(tmp_path: Path) -> None:
    for number, content in enumerate(("one", "two", "three"), 1):
        (tmp_path / "file.json").write_text(content)
        damaged = DamagedFile(tmp_path / "file.json", "is not JSON", "write it again.")
        with pytest.warns(UserWarning, match=rf"file.json is not JSON: it is kept as .*-{number}, and made again\."):
            set_aside(damaged, "made again")
    assert [(tmp_path / f"file.json.unreadable-{n}").read_text() for n in (1, 2, 3)] == ["one", "two", "three"]
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(AttarError, match=r"cannot be renamed .*: move it away"):
        set_aside(damaged, "made again")


def test_what_is_wrong_with_a_file_reaches_another_process() -> None:
    damaged = DamagedFile(Path("a"), "is not JSON", "write it again.")
    again = pickle.loads(pickle.dumps(damaged))
    assert (str(again), again.path) == ("a is not JSON: write it again.", Path("a"))
