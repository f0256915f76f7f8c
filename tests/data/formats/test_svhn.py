import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from attar.core.errors import AttarError
from attar.data.formats import svhn
from attar.data.load import load
from tests.data.samples import labels, pixels

io = pytest.importorskip("scipy.io")


def write(folder: Path, part: str = "train", n: int = 40, shift: int = 1) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{part}_32x32.mat"
    content = {"X": pixels(n, 3, 32, 32).transpose(2, 3, 1, 0), "y": (labels(n, 10) + shift)[:, None].astype(np.uint8)}
    io.savemat(path, content, do_compression=True)
    return path


def test_round_trip_with_ten_for_zero(tmp_path: Path) -> None:
    write(tmp_path / "svhn")
    write(tmp_path / "svhn", "test", n=20)
    split = load("svhn", root=tmp_path, download=False, scaling="none")
    assert (split.test.x * 255).round().byte().numpy().tolist() == pixels(20, 3, 32, 32).tolist()
    assert split.test.y[:10].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert split.spec.target.names == tuple("0123456789")
    assert load(tmp_path / "svhn", scaling="none").test.fingerprint == split.test.fingerprint


def test_the_test_file_may_be_missing_where_a_path_is_given(tmp_path: Path) -> None:
    write(tmp_path)
    assert len(load(tmp_path).test) == 10  # a fifth of four examples is rounded to one in each class


def test_spoiled_files_are_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path)
    content = path.read_bytes()
    for spoiled in (content[:-500], content[:40], b"", b"x" * 500):
        path.write_bytes(spoiled)
        with pytest.raises(AttarError, match=r"train_32x32\.mat is not a complete MATLAB file"):
            load(tmp_path)


@pytest.mark.parametrize("shift", [0, 2])
def test_labels_outside_one_to_ten_are_refused(shift: int, tmp_path: Path) -> None:
    write(tmp_path, shift=shift)
    with pytest.raises(AttarError, match=r"where SVHN has bytes \(32, 32, 3, n\) and labels 1\.\.10"):
        load(tmp_path)


def test_a_file_without_labels_is_refused(tmp_path: Path) -> None:
    io.savemat(tmp_path / "train_32x32.mat", {"X": pixels(32, 32, 3, 2)})
    with pytest.raises(AttarError, match="holds no 'y'"):
        load(tmp_path)


def test_a_part_that_unpacks_to_more_than_it_announces_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train_32x32.mat"
    io.savemat(path, {"X": np.zeros((32, 32, 3, 3000), np.uint8)})
    content = path.read_bytes()
    small = content[128:].replace(struct.pack("<4i", 32, 32, 3, 3000), struct.pack("<4i", 32, 32, 3, 1))
    packed = zlib.compress(small)
    path.write_bytes(content[:128] + struct.pack("<II", 15, len(packed)) + packed)
    assert io.whosmat(path) == [("X", (32, 32, 3, 1), "uint8")]
    monkeypatch.setenv("ATTAR_MAX_BYTES", "5MB")
    with pytest.raises(AttarError, match=r"A part of .*train_32x32\.mat needs 5\.\d MB of memory where files may take"):
        svhn.read(tmp_path)
