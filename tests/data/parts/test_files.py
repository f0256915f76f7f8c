"""Which files a path, a pattern or a URL names."""

from pathlib import Path

import pytest

from attar.core.errors import AttarError
from attar.data.parts.files import find, opened, stamp
from tests.tables import parquet


def test_files_are_sorted_and_of_one_kind(tmp_path: Path) -> None:
    pattern = parquet(tmp_path)
    names = [str(tmp_path / f"{number}.parquet") for number in range(3)]
    assert find(pattern) == find(tmp_path) == find(f"file://{pattern}") == names
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "0.parquet").rename(tmp_path / "deep" / "er" / "0.parquet")
    assert find(f"{tmp_path}/**/*.parquet")[-1] == str(tmp_path / "deep" / "er" / "0.parquet")
    (tmp_path / "x.npy").touch()
    with pytest.raises(AttarError, match=r"has files of \.npy and \.parquet: give files of one kind"):
        find(tmp_path)
    with pytest.raises(AttarError, match="No file matches"):
        find(tmp_path / "none.parquet")
    (tmp_path / "x.txt").touch()
    with pytest.raises(AttarError, match=r"has files of \.txt"):
        find(tmp_path / "x.txt")


def test_urls_are_found_by_fsspec(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is an extra")
    parquet(tmp_path)
    memory = fsspec.filesystem("memory")
    for number in range(3):
        memory.put(str(tmp_path / f"{number}.parquet"), f"/somewhere/{number}.parquet")
    found = find("memory://somewhere/*.parquet")
    assert [Path(name).name for name in found] == ["0.parquet", "1.parquet", "2.parquet"]
    assert find("memory://somewhere") == found
    with opened(found[0]) as file:
        assert file.read() == (tmp_path / "0.parquet").read_bytes()
    assert stamp(found[0]) != stamp(found[1])
    memory.rm("/somewhere", recursive=True)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("memory://nowhere/*.parquet", "No file matches"),
        ("nosuch://place/x.parquet", "cannot be read .*nosuch|needs another package"),
        ("http://127.0.0.1:9/x.parquet", "cannot be read|No file matches|needs another package"),
    ],
)
def test_addresses_that_lead_nowhere_are_one_sentence(source: str, message: str) -> None:
    with pytest.raises(AttarError, match=message):
        find(source)


def test_a_changed_file_has_another_stamp(tmp_path: Path) -> None:
    parquet(tmp_path)
    path = tmp_path / "0.parquet"
    before = stamp(str(path))
    path.write_bytes(path.read_bytes() + b"x")
    assert stamp(str(path)) != before
    with pytest.raises(AttarError, match="cannot be read"):
        stamp(str(tmp_path / "none"))
