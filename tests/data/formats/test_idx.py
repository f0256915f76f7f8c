import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from attar.core.errors import AttarError
from attar.data.formats import idx
from attar.data.load import load
from tests.data.samples import idx_bytes, labels, pixels, write_idx, write_mnist

IMAGES = pixels(6, 5, 4)


@pytest.mark.parametrize("name", ["images", "images.gz"])
def test_round_trip(name: str, tmp_path: Path) -> None:
    write_idx(tmp_path / name, IMAGES)
    assert (idx.parse(tmp_path / name, 3) == IMAGES).all()


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_folder_with_and_without_a_test_set(suffix: str, tmp_path: Path) -> None:
    write_mnist(tmp_path, n=40, suffix=suffix)
    split = idx.read(tmp_path)
    assert split.train.x.shape == (40, 1, 5, 4)
    assert split.test is not None
    assert split.test.y.tolist() == labels(20, 10).tolist()
    for path in tmp_path.glob("t10k*"):
        path.unlink()
    assert idx.read(tmp_path).test is None


def test_half_a_test_set_names_the_missing_file(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(AttarError, match=r"no file t10k-labels-idx1-ubyte\.gz in"):
        idx.read(tmp_path)


WHOLE = idx_bytes(IMAGES)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (WHOLE[:-1], "truncated"),
        (WHOLE + b"\0", "extra bytes"),
        (WHOLE[:9], "ends within its header"),
        (b"", "starts with nothing"),
        (b"\x89PNG" + WHOLE[4:], "not with the magic number"),
        (bytes((0, 0, 13, 3)) + WHOLE[4:], "not with the magic number"),
        (idx_bytes(IMAGES[0]), "in 3 dimensions"),
        (WHOLE[:4] + struct.pack(">3I", *[2**32 - 1] * 3) + WHOLE[16:], "truncated"),
    ],
)
def test_a_spoiled_file_is_refused_by_name(content: bytes, words: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("images.gz" if packed else "images")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(AttarError, match=words) as caught:
        idx.parse(path, 3)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [gzip.compress(WHOLE)[:-20], b"no gzip", b""])
def test_a_spoiled_archive_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "images.gz").write_bytes(content)
    with pytest.raises(AttarError, match=r"images\.gz .*download it again"):
        idx.parse(tmp_path / "images.gz", 3)


def test_labels_beyond_the_known_classes_are_refused(tmp_path: Path) -> None:
    write_mnist(tmp_path / "mnist", classes=11)
    with pytest.raises(AttarError, match=r"label 10 at example 10, outside 0\.\.9"):
        load("mnist", root=tmp_path, download=False)


def test_more_images_than_labels_are_refused(tmp_path: Path) -> None:
    write_mnist(tmp_path / "mnist")
    write_idx(tmp_path / "mnist" / "train-labels-idx1-ubyte.gz", labels(39, 10).astype(np.uint8))
    with pytest.raises(AttarError, match="40 examples but 39 labels"):
        load("mnist", root=tmp_path, download=False)


@pytest.mark.parametrize("inside", ["", "gzip"])
def test_emnist_is_turned_upright_and_named(inside: str, tmp_path: Path) -> None:
    stored = pixels(141, 28, 28)
    for part in ("train", "test"):
        stem = tmp_path / "emnist" / inside / f"emnist-balanced-{part}"
        write_idx(Path(f"{stem}-images-idx3-ubyte.gz"), stored)
        write_idx(Path(f"{stem}-labels-idx1-ubyte.gz"), labels(141, 47).astype(np.uint8))
    split = load("emnist", root=tmp_path, download=False, scaling="none")
    assert (split.test.x[5, 0].numpy() * 255).round().astype(int).tolist() == stored[5].T.tolist()
    assert split.classes == 47
    assert split.spec.target.names[10] == "A"
    assert split.spec.target.names[46] == "t"
    assert load(tmp_path / "emnist", scaling="none").test.fingerprint == split.test.fingerprint
