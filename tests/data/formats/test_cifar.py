import pickle
from pathlib import Path

import numpy as np
import pytest

from attar.core.errors import AttarError
from attar.data.formats import cifar
from attar.data.load import load
from tests.data.samples import labels, pixels


def write_cifar10(folder: Path, n: int = 20, inside: str = "cifar-10-batches-bin") -> None:
    (folder / inside).mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        records = np.concatenate([labels(n, 10).astype(np.uint8)[:, None], pixels(n, 3072, seed=seed)], axis=1)
        records.tofile(folder / inside / f"{name}.bin")


def write_cifar100(folder: Path, n: int = 200) -> None:
    (folder / "cifar-100-binary").mkdir(parents=True)
    fine = labels(n, 100).astype(np.uint8)
    for part in ("train", "test"):
        records = np.concatenate([fine[:, None] // 5, fine[:, None], pixels(n, 3072)], axis=1)
        records.tofile(folder / "cifar-100-binary" / f"{part}.bin")


@pytest.mark.parametrize("inside", ["cifar-10-batches-bin", ""])
def test_cifar10_round_trip_wherever_the_files_lie(inside: str, tmp_path: Path) -> None:
    write_cifar10(tmp_path / "cifar10", inside=inside)
    raw = cifar.read_cifar10(tmp_path / "cifar10")
    assert raw.train.x.shape == (100, 3, 32, 32)
    assert (raw.train.x[20] == pixels(20, 3072, seed=1)[0].reshape(3, 32, 32)).all()
    assert raw.test is not None
    assert (raw.test.x.reshape(20, -1) == pixels(20, 3072, seed=5)).all()
    assert raw.train.y[:12].tolist() == labels(12, 10).tolist()
    split = load("cifar10", root=tmp_path, download=False)
    assert split.spec.target.names[6] == "frog"
    for path in (tmp_path / "cifar10", tmp_path / "cifar10" / inside):
        assert load(path).train.fingerprint == split.train.fingerprint


def test_cifar100_takes_the_fine_label(tmp_path: Path) -> None:
    write_cifar100(tmp_path / "cifar100")
    split = load("cifar100", root=tmp_path, download=False, scaling="none")
    assert split.test.y[:3].tolist() == [0, 1, 2]
    assert split.classes == 100
    for path in (tmp_path / "cifar100", tmp_path / "cifar100" / "cifar-100-binary"):
        assert load(path, scaling="none").test.fingerprint == split.test.fingerprint


def test_the_hundred_classes_are_in_alphabetical_order() -> None:
    assert len(set(cifar.CIFAR100)) == 100
    assert list(cifar.CIFAR100) == sorted(cifar.CIFAR100)


@pytest.mark.parametrize("change", [-1, +1])
def test_a_file_of_broken_records_is_refused(change: int, tmp_path: Path) -> None:
    write_cifar10(tmp_path)
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    content = path.read_bytes()
    path.write_bytes(content[:change] if change < 0 else content + b"\0")
    with pytest.raises(AttarError, match=r"data_batch_3\.bin has \d+ bytes, not a multiple of the record size 3073"):
        load(tmp_path)


def test_an_empty_and_a_missing_file_are_named(tmp_path: Path) -> None:
    write_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "test_batch.bin").write_bytes(b"")
    with pytest.raises(AttarError, match=r"test_batch\.bin has 0 bytes"):
        load(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "test_batch.bin").unlink()
    with pytest.raises(AttarError, match=r"no file test_batch\.bin"):
        load(tmp_path)


def test_a_label_beyond_the_classes_is_refused(tmp_path: Path) -> None:
    write_cifar10(tmp_path)
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_1.bin"
    path.write_bytes(b"\x0a" + path.read_bytes()[1:])
    with pytest.raises(AttarError, match="label 10 at example 0"):
        load(tmp_path)


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("exploded"),)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("inside", "files", "binary"),
    [
        ("cifar-10-batches-py", ("data_batch_1", "batches.meta"), "cifar-10-binary.tar.gz"),
        ("cifar-100-python", ("train", "test", "meta"), "cifar-100-binary.tar.gz"),
    ],
)
def test_pickles_are_refused_unopened_and_the_binary_version_is_named(
    inside: str, files: tuple[str, ...], binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "got" / inside).mkdir(parents=True)
    for name in files:
        (tmp_path / "got" / inside / name).write_bytes(pickle.dumps(Bomb()))
    for path in (tmp_path / "got", tmp_path / "got" / inside):
        with pytest.raises(AttarError, match=f"could run any code: replace it by the binary version, {binary}"):
            load(path)
    assert not Path("exploded").exists()


def test_pickles_under_a_known_name_ask_for_the_binary_version(tmp_path: Path) -> None:
    (tmp_path / "cifar10" / "cifar-10-batches-py").mkdir(parents=True)
    (tmp_path / "cifar10" / "cifar-10-batches-py" / "data_batch_1").write_bytes(b"\x80\x04.")
    with pytest.raises(AttarError, match=r"put cifar-10-binary\.tar\.gz or .*data_batch_1\.bin"):
        load("cifar10", root=tmp_path, download=False)
