"""Readers give back any array that was written, and of damaged files say so and nothing else."""

import csv
import gzip
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import save

from attar.core.errors import AttarError
from attar.data.formats import idx, npz, safetensors_, table
from attar.data.raw import RawSplit
from tests.data.samples import idx_bytes, labels, pixels
from tests.strategies import SHAPES, TEXT, damaged, floats, rows
from tests.strategies import labels as any_labels

Read = Callable[[Path], Any]
DTYPES = st.sampled_from(["uint8", "bool", "int16", "int64", "float16", "float32", "float64"])


def read_bytes(read: Read, name: str, content: bytes) -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return read(path)


def npz_bytes(**arrays: NDArray[Any]) -> bytes:
    file = BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def csv_bytes(header: list[str], lines: list[list[object]]) -> bytes:
    text = StringIO()
    csv.writer(text).writerows([header, *lines])
    return text.getvalue().encode()


@st.composite
def labelled(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[np.int64]]:
    y = draw(any_labels())
    return draw(rows(len(y), draw(SHAPES), draw(DTYPES))), y


def same(split: RawSplit, x: NDArray[Any], names: list[str]) -> None:
    """The reader brought these examples, with these labels by name, in this order."""
    train = split.train
    assert np.array_equal(train.x, x if x.dtype == np.uint8 or train.columns else x.astype(np.float32))
    assert train.rows.tolist() == list(range(len(x)))
    assert [split.classes[label] for label in train.y] == names
    assert set(split.classes) == set(names)


@given(labelled(), st.lists(st.integers(-(2**62), 2**62), min_size=3, max_size=3, unique=True))
def test_numpy_archives_give_back_any_array_and_any_whole_numbers_as_labels(
    arrays: tuple[NDArray[Any], NDArray[np.int64]], values: list[int]
) -> None:
    x, y = arrays
    known = np.array(values)[y]
    same(read_bytes(npz.read, "a.npz", npz_bytes(x=x, y=known)), x, [str(value) for value in known])


@given(labelled(), st.lists(TEXT.filter(bool), min_size=3, max_size=3, unique=True))
def test_numpy_archives_give_back_labels_that_are_texts(
    arrays: tuple[NDArray[Any], NDArray[np.int64]], names: list[str]
) -> None:
    x, y = arrays
    same(read_bytes(npz.read, "a.npz", npz_bytes(x=x, y=np.array(names)[y])), x, [names[label] for label in y])


@given(labelled())
def test_safetensors_files_give_back_any_array(arrays: tuple[NDArray[Any], NDArray[np.int64]]) -> None:
    x, y = arrays
    content = save({"x": np.ascontiguousarray(x), "y": y})
    same(read_bytes(safetensors_.read, "a.safetensors", content), x, [str(label) for label in y])


@given(st.data())
def test_tables_give_back_any_numbers_and_any_class_names(data: st.DataObject) -> None:
    y = data.draw(any_labels())
    names = [f"kind {name}".strip() for name in data.draw(st.lists(TEXT, min_size=3, max_size=3, unique=True))]
    columns = [f"column {name}".strip() for name in data.draw(st.lists(TEXT, min_size=1, max_size=4, unique=True))]
    x = data.draw(rows(len(y), (len(set(columns)),), "float32"))
    place = data.draw(st.integers(0, len(set(columns))))
    header = [*dict.fromkeys(columns)]
    lines: list[list[object]] = [[repr(float(value)) for value in row] for row in x]
    for line, label in zip([header, *lines], ["the label", *(names[label] for label in y)], strict=True):
        line.insert(place, label)  # type: ignore[attr-defined]
    read = read_bytes(lambda path: table.read_csv(path, "the label"), "a.csv", csv_bytes(header, lines))
    same(read, x, [names[label] for label in y])
    assert [column.name for column in read.train.columns] == [name for name in header if name != "the label"]


@given(st.integers(1, 3).flatmap(lambda ndim: st.tuples(*[st.integers(0, 5)] * ndim)), st.booleans(), st.randoms())
def test_idx_files_give_back_any_bytes(shape: tuple[int, ...], packed: bool, chance: Any) -> None:
    array = pixels(*shape, seed=chance.randrange(99))
    content = gzip.compress(idx_bytes(array)) if packed else idx_bytes(array)
    found = read_bytes(lambda path: idx.parse(path, array.ndim), "a.gz" if packed else "a", content)
    assert np.array_equal(found, array)


X, Y = pixels(6, 3).astype(np.float32) / 7, labels(6)
IMAGES = idx_bytes(pixels(3, 4, 5))
FILES: dict[str, tuple[Read, bytes]] = {
    "a.npz": (npz.read, npz_bytes(x=X, y=Y, classes=np.array(["a", "b", "c"]))),
    "a.safetensors": (safetensors_.read, save({"x": X, "y": Y})),
    "a.csv": (lambda path: table.read_csv(path, None), csv_bytes(["a", "b", "c", "y"], [[*x, "k"] for x in X])),
    "a": (lambda path: idx.parse(path, 3), IMAGES),
    "a.gz": (lambda path: idx.parse(path, 3), gzip.compress(IMAGES)),
}
of_files = pytest.mark.parametrize("name", FILES)


@of_files
@settings(max_examples=150)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_one_sentence(name: str, data: st.DataObject) -> None:
    read, whole = FILES[name]
    with suppress(AttarError):
        read_bytes(read, name, data.draw(damaged(whole)))


@pytest.mark.parametrize(("place", "byte"), [(8, 1), (10, 99)], ids=["encrypted", "compressed by another program"])
def test_an_archive_that_says_it_is_of_another_kind_is_refused(place: int, byte: int) -> None:
    read, whole = FILES["a.npz"]
    broken = bytearray(whole)
    broken[whole.index(b"PK\x01\x02") + place] = byte  # of the list of members at the end
    with pytest.raises(AttarError, match="not a complete archive"):
        read_bytes(read, "a.npz", bytes(broken))


@of_files
@given(data=st.data())
def test_a_file_that_lost_its_end_is_refused_unless_it_was_a_table(name: str, data: st.DataObject) -> None:
    read, whole = FILES[name]
    read_bytes(read, name, whole)
    if name != "a.csv":
        with pytest.raises(AttarError, match="a"):
            read_bytes(read, name, whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.lists(st.one_of(floats().map(str), TEXT), min_size=4, max_size=4), st.integers(2, 6))
def test_a_table_with_a_bad_line_is_refused_by_its_number_or_column(line: list[str], at: int) -> None:
    lines: list[list[object]] = [[1.0, 2.0, 3.0, f"k{k}"] for k in range(6)]
    lines.insert(at, list(line[:3]))
    with pytest.raises(AttarError, match=r"Line \d+ of .* has 3 values"):
        read_bytes(lambda path: table.read_csv(path, None), "a.csv", csv_bytes(["a", "b", "c", "y"], lines))
