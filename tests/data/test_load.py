import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from attar.core.errors import AttarError, MissingExtra
from attar.data import Data, Split, load
from attar.data.readers import NAMES, SHARED
from tests.data.samples import labels, pixels, write_idx, write_mnist

CACHE = Path(os.environ.get("ATTAR_DATA", "~/.cache/attar/data")).expanduser()


def test_digits_come_with_the_package_and_equal_those_of_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.datasets").load_digits()
    split = load("digits", scaling="none")
    ours = torch.cat([part.x for part in (split.train, split.val, split.test)])
    theirs = torch.from_numpy(sklearn.images).float()[:, None] / 16
    order = [torch.cat([x.flatten(1) * 16, y[:, None]], 1).numpy() for x, y in (
        (ours, torch.cat([part.y for part in (split.train, split.val, split.test)])),
        (theirs, torch.from_numpy(sklearn.target)),
    )]  # fmt: skip
    assert (order[0][np.lexsort(order[0].T)] == order[1][np.lexsort(order[1].T)]).all()
    assert split.shape == (1, 8, 8)
    assert split.spec.target.names == tuple("0123456789")


@pytest.mark.parametrize(
    ("package", "file", "extra"),
    [
        ("scipy.io", "train_32x32.mat", "mat"),
        ("pyarrow", "mine.parquet", "parquet"),
        ("datasets", "dataset_info.json", "hf"),
    ],
)
def test_a_format_that_needs_a_package_names_the_extra(
    package: str, file: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / file).touch()
    with pytest.raises(MissingExtra, match=rf"pip install 'attar\[{extra}\]'"):
        load(tmp_path / file if extra == "parquet" else tmp_path)


def test_digits_need_no_other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("sklearn", "scipy", "pyarrow", "datasets"):
        monkeypatch.setitem(sys.modules, package, None)
    assert len(load("digits").train) > 1000


def test_digits_are_standardised_and_go_back_to_sixteenths() -> None:
    split = load("digits")
    assert split.train.x.mean().abs() < 1e-5
    counts = split.spec.stored(split.test.x) * 16
    assert torch.allclose(counts, counts.round(), atol=1e-4)


def test_classes_keep_their_share_in_every_set() -> None:
    split = load("digits", val=0.1, test=0.2)
    whole = torch.cat([split.train.y, split.val.y, split.test.y]).bincount()
    assert torch.equal(split.test.y.bincount(), torch.tensor([round(0.2 * int(n)) for n in whole]))
    left = whole - split.test.y.bincount()
    assert torch.equal(split.val.y.bincount(), torch.tensor([round(0.1 * int(n)) for n in left]))


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_the_real_sets_have_their_published_sizes(name: str) -> None:
    if not (CACHE / name).is_dir():
        pytest.skip(f"{name} is not on disk")
    split = load(name, root=CACHE, download=False, scaling="none", val=0.1)
    assert (len(split.train) + len(split.val), len(split.test)) == (60000, 10000)
    assert abs(len(split.val) - 6000) <= 5  # a tenth of each of ten classes, rounded
    assert split.shape == (1, 28, 28)
    assert split.classes == 10
    published = {"mnist": 0.1307, "fashion-mnist": 0.2860}[name]  # mean pixel of the whole training set
    total = (split.train.x.sum(dtype=torch.float64) + split.val.x.sum(dtype=torch.float64)) / (60000 * 784)
    assert abs(total.item() - published) < 1e-4


# names


def test_a_known_name_is_read_from_its_folder_under_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(tmp_path / "fashion-mnist")
    split = load("fashion-mnist", root=tmp_path, download=False)
    assert split.spec.name == "fashion-mnist"
    assert split.spec.target.names[9] == "Ankle boot"
    monkeypatch.setenv("ATTAR_DATA", str(tmp_path))
    assert load("fashion-mnist", download=False).train.fingerprint == split.train.fingerprint


def test_files_under_a_known_name_may_be_unpacked(tmp_path: Path) -> None:
    write_mnist(tmp_path / "mnist", suffix="")
    write_mnist(tmp_path / "packed" / "mnist")
    packed = load("mnist", root=tmp_path / "packed", download=False)
    assert same(load("mnist", root=tmp_path, download=False), packed)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"sst5"}))
def test_a_known_name_that_is_not_there_says_what_to_put_where(name: str, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=r"put .* into .*download=True") as caught:
        load(name, root=tmp_path, download=False)
    assert str(tmp_path / SHARED.get(name, name)) in str(caught.value)


def test_a_known_name_without_a_published_checksum_is_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=r"put stsa\.fine\.train, .* into .*sst5; they are at https://"):
        load("sst5", root=tmp_path)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(AttarError, match="Unknown data set 'fashon-mnist': did you mean 'fashion-mnist'"):
        load("fashon-mnist")


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=r"no file or folder .*nothing\.npz: check the path"):
        load(tmp_path / "nothing.npz")


def test_a_file_of_unknown_kind_says_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "data.pkl").write_bytes(b"\x80\x04.")
    with pytest.raises(AttarError, match=r"is not supported: give a folder or \*\.npz"):
        load(tmp_path / "data.pkl")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="holds no supported data"):
        load(tmp_path)


def test_the_failing_file_or_folder_is_named(tmp_path: Path) -> None:
    write_mnist(tmp_path / "mine", classes=1)
    with pytest.raises(AttarError, match=f"{tmp_path / 'mine'} has only one class"):
        load(tmp_path / "mine")


# memory


def same(first: Split, second: Split) -> bool:
    pairs = zip((first.train, first.val, first.test), (second.train, second.val, second.test), strict=True)
    return all(a.fingerprint == b.fingerprint for a, b in pairs)


class Pairs(Dataset[tuple[object, object]]):
    classes = ("ant", "bee", "cow")

    def __init__(self, x: object, y: object) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[object, object]:
        return self.x[index], self.y[index]  # type: ignore[index]


def test_arrays_tensors_and_data_sets_of_the_same_numbers_load_alike() -> None:
    x, y = pixels(30, 1, 4, 4), labels(30)
    arrays = load((x, y))
    assert isinstance(arrays.train, Data)
    assert arrays.spec.target.names == ("0", "1", "2")
    assert same(arrays, load((torch.from_numpy(x), torch.from_numpy(y))))
    assert same(arrays, load(TensorDataset(torch.from_numpy(x), torch.from_numpy(y))))
    named = load(Pairs(x, y.tolist()))
    assert same(arrays, named)
    assert named.spec.target.names == Pairs.classes


def test_a_data_set_of_pillow_images_and_names() -> None:
    image = pytest.importorskip("PIL.Image")
    x = pixels(30, 6, 5, 3)
    split = load(Pairs([image.fromarray(pixel) for pixel in x], [Pairs.classes[i] for i in labels(30)]))
    assert split.shape == (3, 6, 5)
    assert same(split, load((x, labels(30))))


def test_a_mapping_brings_its_test_set_from_any_source(tmp_path: Path) -> None:
    x, y = pixels(30, 4), labels(30)
    np.savez(tmp_path / "test.npz", x=x[:6], y=y[:6])
    split = load({"train": (x, y), "test": tmp_path / "test.npz"}, scaling="none")
    assert torch.equal(split.test.x, torch.from_numpy(x[:6]).float() / 255)
    assert len(split.train) + len(split.val) == 30
    assert same(load({"train": (x, y)}), load((x, y)))


def test_a_mapping_says_which_keys_it_takes() -> None:
    pair = (pixels(30, 4), labels(30))
    for wrong in ({"test": pair}, {"train": pair, "validate": pair}, {}):
        with pytest.raises(AttarError, match="needs 'train' and may have 'test' and 'val'"):
            load(wrong)
    with pytest.raises(AttarError, match="has a test or validation set of its own"):
        load({"train": {"train": pair, "test": pair}, "test": pair})


def test_float_pixels_are_kept_as_they_are() -> None:
    x = np.linspace(-5, 300, 60, dtype=np.float32).reshape(30, 2)
    split = load((x, labels(30)), scaling="none")
    assert split.train.x.dtype == torch.float32
    assert torch.cat([split.train.x, split.val.x, split.test.x]).max() == 300


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(())


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (3, "cannot be loaded from int"),
        ((1, 2, 3), "cannot be loaded from tuple"),
        (Stream(), "map-style torch Dataset"),
        (Pairs([], []), "Pairs is empty"),
        (Pairs([np.zeros(2), np.zeros(3)], [0, 1]), r"Examples 0 and 1 of Pairs have shapes \(2,\) and \(3,\)"),
        (TensorDataset(torch.zeros(3)), "Item 0 of TensorDataset is not a pair"),
        (([[1, 2], [3]], [0, 1]), "differ in shape"),
        ((np.full((30, 2), np.nan), labels(30)), "NaN or Inf"),
        ((np.full((30, 2), 1e300), labels(30)), "NaN or Inf"),
        ((pixels(30, 2), labels(29)), "30 examples but 29 labels"),
        ((pixels(30, 2), labels(30, 1)), "only one class"),
        ((pixels(30, 2), np.eye(30)), "labels of shape"),
        ((pixels(0, 2), labels(0)), "is empty"),
        ({"train": (pixels(30, 2), labels(30)), "test": (pixels(0, 2), labels(0))}, "test set of .* is empty"),
        ({"train": (pixels(30, 2), labels(30)), "test": (pixels(9, 3), labels(9))}, "give both the same shape"),
        ({"train": (pixels(30, 2), labels(30)), "test": (pixels(9, 2), labels(9, 9))}, "class '3', which train lacks"),
    ],
)
def test_bad_data_in_memory_is_refused(source: object, words: str) -> None:
    with pytest.raises(AttarError, match=words):
        load(source)  # type: ignore[arg-type]


def test_target_without_columns_is_refused(tmp_path: Path) -> None:
    write_idx(tmp_path / "train-images-idx3-ubyte", pixels(30, 4, 4))
    write_idx(tmp_path / "train-labels-idx1-ubyte", labels(30).astype(np.uint8))
    for source in ("digits", tmp_path, (pixels(30, 2), labels(30))):
        with pytest.raises(AttarError, match="leave target out"):
            load(source, target="label")
    assert load(tmp_path).classes == 3


def test_a_folder_that_is_called_like_a_known_data_set_is_said_aloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    with pytest.warns(UserWarning, match=r"write '\./digits'"):
        assert len(load("digits").train) > 1000
    with pytest.raises(AttarError, match="digits"):
        load("./digits")  # which is empty
