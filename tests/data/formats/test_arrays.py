from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

import attar
from attar.core.errors import AttarError
from attar.data.load import load
from tests.data.samples import labels, pixels

Writer = Callable[[Path, dict[str, NDArray[Any]]], Path]


def write_npz(folder: Path, arrays: dict[str, NDArray[Any]]) -> Path:
    np.savez(folder / "mine.npz", allow_pickle=True, **arrays)
    return folder / "mine.npz"


def write_safetensors(folder: Path, arrays: dict[str, NDArray[Any]]) -> Path:
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / "mine.safetensors")
    return folder / "mine.safetensors"


both = pytest.mark.parametrize("write", [write_npz, write_safetensors])


@both
def test_one_set_loads_like_the_arrays_themselves(write: Writer, tmp_path: Path) -> None:
    x, y = pixels(30, 8, 6, 3), labels(30)
    split = load(write(tmp_path, {"x": x, "y": y}))
    assert split.shape == (3, 8, 6)
    assert split.spec.name == "mine"
    assert split.train.fingerprint == load((x, y)).train.fingerprint


@both
def test_a_test_set_comes_along(write: Writer, tmp_path: Path) -> None:
    x, y = pixels(30, 5).astype(np.float32), labels(30).astype(np.int32)
    path = write(tmp_path, {"x_train": x, "y_train": y, "x_test": x[:7], "y_test": y[:7]})
    split = load(path, scaling="none")
    assert (split.test.x.numpy() == x[:7]).all()
    assert split.test.y.tolist() == y[:7].tolist()
    assert len(load(write(tmp_path, {"x_train": x, "y_train": y})).test) == 6


@both
@pytest.mark.parametrize("keys", [("x",), ("a", "b"), ("x_train", "y_train", "x_test"), ("x_test", "y_test")])
def test_other_keys_are_named(write: Writer, keys: tuple[str, ...], tmp_path: Path) -> None:
    path = write(tmp_path, {key: labels(30) for key in keys})
    with pytest.raises(AttarError, match=rf"mine.* has the keys {', '.join(sorted(keys))}: save x and y, or"):
        load(path)


@both
def test_a_truncated_file_is_refused(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path, {"x": pixels(30, 5), "y": labels(30)})
    content = path.read_bytes()
    for part in (content[: len(content) // 2], content[:3], b"", b"nonsense"):
        path.write_bytes(part)
        with pytest.raises(AttarError, match=r"mine\.\w+ is not a complete"):
            load(path)


@both
def test_bad_numbers_are_refused(write: Writer, tmp_path: Path) -> None:
    x, y = pixels(30, 5).astype(np.float32), labels(30)
    x[3, 1] = np.inf
    with pytest.raises(AttarError, match="NaN or Inf"):
        load(write(tmp_path, {"x": x, "y": y}))
    with pytest.raises(AttarError, match="not whole numbers"):
        load(write(tmp_path, {"x": pixels(30, 5), "y": y + 0.25}))
    with pytest.raises(AttarError, match="30 examples but 29 labels"):
        load(write(tmp_path, {"x": pixels(30, 5), "y": y[1:]}))


def test_npz_labels_may_be_strings(tmp_path: Path) -> None:
    path = write_npz(tmp_path, {"x": pixels(30, 5), "y": np.array(["b", "a", "c"])[labels(30)]})
    assert load(path).spec.target.names == ("a", "b", "c")


def test_pickled_objects_in_npz_are_refused(tmp_path: Path) -> None:
    path = write_npz(tmp_path, {"x": np.array([{}, {}], dtype=object), "y": labels(2)})
    with pytest.raises(AttarError, match="not a complete archive of plain arrays"):
        load(path)


def test_a_single_array_named_npz_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "mine.npz").open("wb") as file:
        np.save(file, pixels(4, 4))
    with pytest.raises(AttarError, match="not a complete archive of plain arrays"):
        load(tmp_path / "mine.npz")


def test_a_coreset_file_and_its_npz_are_data_in_original_units_with_class_names(tmp_path: Path) -> None:
    split = attar.load("digits")
    coreset = attar.reduce(split, "uniform", per_class=5)
    coreset.save(tmp_path / "c.safetensors")
    coreset.export(tmp_path / "c.npz")
    for name in ("c.safetensors", "c.npz"):
        loaded = attar.load(tmp_path / name, scaling="none")
        assert loaded.spec.target.names == split.spec.target.names
        assert 0 <= float(loaded.train.x.min()) <= float(loaded.train.x.max()) <= 1 + 1e-6
