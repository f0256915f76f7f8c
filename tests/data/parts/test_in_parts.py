"""Rows of tables, in batches, from every format that is read in pieces."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from attar.core.errors import AttarError
from attar.data import InParts
from attar.data.parts.in_parts import Batch
from tests.tables import KEYS, X, Y, corrupt, parquet, table

NAMED = {"features": "emb", "label": "y", "id": "key"}


def in_arrow(folder: Path) -> Any:
    for number in range(3):
        with pa.ipc.new_file(str(folder / f"{number}.arrow"), table().schema) as file:
            file.write_table(table(300 * number, 300 * number + 300), max_chunksize=70)
    return folder


def in_streams(folder: Path) -> Any:
    for number in range(3):
        with pa.ipc.new_stream(str(folder / f"{number}.arrow"), table().schema) as file:
            file.write_table(table(300 * number, 300 * number + 300), max_chunksize=70)
    return str(folder / "[0-2].arrow")


def saved(folder: Path) -> Any:
    datasets = pytest.importorskip("datasets", reason="datasets is an extra")
    whole = datasets.Dataset(table())
    datasets.DatasetDict({"train": whole, "test": whole.select(range(5))}).save_to_disk(str(folder / "saved"))
    return folder / "saved"


def loaded(folder: Path) -> Any:
    return pytest.importorskip("datasets", reason="datasets is an extra").Dataset(table())


def streamed(folder: Path) -> Any:
    return pytest.importorskip("datasets", reason="datasets is an extra").Dataset(table()).to_iterable_dataset()


def at_url(folder: Path) -> Any:
    parquet(folder)
    return f"file://{folder}/*.parquet"


def read(columns: InParts, **only: Any) -> list[Batch]:
    return list(columns.read(columns.table.segments(), 0, **only))


@pytest.mark.parametrize("write", [parquet, in_arrow, in_streams, saved, loaded, streamed, at_url])
def test_all_rows_come_in_order_from_every_format(write: Callable[[Path], Any], tmp_path: Path) -> None:
    columns = InParts(write(tmp_path), **NAMED)
    batches = read(columns)
    assert columns.kind == "vectors"
    assert sum(segment.rows for segment in columns.table.segments()) == 900
    assert np.array_equal(np.concatenate([batch.numbers for batch in batches]), np.arange(900))
    assert np.array_equal(np.concatenate([batch.x for batch in batches]), X)
    assert [key for batch in batches for key in batch.keys.to_pylist()] == KEYS
    assert [label for batch in batches for label in batch.labels.to_pylist()] == [f"class {y}" for y in Y]


@pytest.mark.parametrize("write", [parquet, in_streams, loaded])
def test_some_rows_and_a_segment_alone(write: Callable[[Path], Any], tmp_path: Path) -> None:
    columns = InParts(write(tmp_path), **NAMED)
    wanted = np.array([3, 299, 300, 640])
    found = read(columns, only=wanted, keys=False)
    assert np.array_equal(np.concatenate([batch.x for batch in found]), X[wanted])
    *before, last = columns.table.segments()
    alone = list(columns.read([last], sum(segment.rows for segment in before), x=False))
    assert [key for batch in alone for key in batch.keys.to_pylist()] == KEYS[-last.rows :]
    assert alone[-1].numbers[-1] == 899


def test_arrays_are_mapped_with_labels_in_a_file_of_their_own(tmp_path: Path) -> None:
    for name, array in {"x": X, "y": Y, "z": Y[:-1]}.items():
        np.save(tmp_path / f"{name}.npy", array)
    columns = InParts(tmp_path / "x.npy", label=str(tmp_path / "y.npy"))
    batches = read(columns)
    assert np.array_equal(np.concatenate([batch.x for batch in batches]), X)
    assert [label for batch in batches for label in batch.labels.to_pylist()] == Y.tolist()
    with pytest.raises(AttarError, match="give one whole number for each row"):
        _ = InParts(tmp_path / "x.npy", label=str(tmp_path / "z.npy")).schema
    with pytest.raises(AttarError, match="has no columns: leave out the features"):
        _ = InParts(tmp_path / "x.npy", "emb").schema
    with pytest.raises(AttarError, match="3 files of examples and 1 of labels"):
        _ = InParts(str(tmp_path / "?.npy"), label=str(tmp_path / "y.npy")).schema


@pytest.fixture
def elsewhere() -> Any:
    memory = pytest.importorskip("fsspec", reason="fsspec is an extra").filesystem("memory")
    yield memory
    memory.rm("/arrays", recursive=True)


def test_arrays_are_read_from_urls_by_ranges_of_bytes(tmp_path: Path, elsewhere: Any) -> None:
    for name, array in (("x", X), ("y", Y), ("f", np.asfortranarray(X)), ("t", np.array(["a"]))):
        np.save(tmp_path / f"{name}.npy", array)
        elsewhere.pipe(f"/arrays/{name}.npy", (tmp_path / f"{name}.npy").read_bytes())
    elsewhere.pipe("/arrays/cut.npy", (tmp_path / "x.npy").read_bytes()[:-4])
    elsewhere.pipe("/arrays/none.npy", b"not an array")
    for place in (f"file://{tmp_path}", "memory://arrays"):
        columns = InParts(f"{place}/x.npy", label=f"{place}/y.npy")
        batches = list(columns.read(columns.table.segments(), 0))
        assert np.array_equal(np.concatenate([batch.x for batch in batches]), X)
        assert [label for batch in batches for label in batch.labels.to_pylist()] == Y.tolist()
    for name, message in (
        ("f", "is written column by column"),
        ("t", "does not hold an array of numbers"),
        ("cut", "is not a complete .npy file .it ends early"),
        ("none", "is not a complete .npy file"),
    ):
        bad = InParts(f"memory://arrays/{name}.npy")
        with pytest.raises(AttarError, match=message):
            list(bad.read(bad.table.segments(), 0))


def test_other_labels_of_arrays_are_noticed(tmp_path: Path) -> None:
    for name, array in (("x", X), ("y", Y)):
        np.save(tmp_path / f"{name}.npy", array)
    found = InParts(tmp_path / "x.npy", label=str(tmp_path / "y.npy")).table
    before = found.stamp(found.segments())
    np.save(tmp_path / "y.npy", Y.astype(np.int32))
    assert found.stamp(found.segments()) != before


def test_a_page_that_changed_is_known_by_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(table(), path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    place = content.index(X[400].tobytes())
    content[place] ^= 1
    path.write_bytes(content)
    columns = InParts(path, "emb")
    with pytest.raises(AttarError, match="is not a complete table"):
        list(columns.read(columns.table.segments(), 0))


def test_features_are_columns_of_numbers_texts_or_images(tmp_path: Path) -> None:
    png = BytesIO()
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(png, "PNG")
    pa.parquet.write_table(
        pa.table({"a": [1.0, 2.0], "b": [3, 4], "t": ["one", "two words"], "i": [png.getvalue()] * 2}),
        tmp_path / "t.parquet",
    )
    path = tmp_path / "t.parquet"
    numbers, texts, images = (InParts(path, name) for name in (["a", "b"], "t", "i"))
    assert [columns.kind for columns in (numbers, texts, images)] == ["vectors", "texts", "images"]
    (batch,) = read(numbers)
    assert batch.x.tolist() == [[1, 3], [2, 4]]  # type: ignore[union-attr]
    assert read(texts)[0].x == ["one", "two words"]
    pixels = read(images)[0].x
    assert isinstance(pixels, np.ndarray)
    assert pixels.shape == (2, 3, 4, 4)
    assert pixels[0, 0, 0].tolist() == [0, 3, 6, 9]


BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "nan": ({"emb": [*map(list, X[:299]), [0, float("nan"), 0, 0]]}, {}, "Row 299 of .* holds NaN or Inf in emb"),
    "null": ({"emb": [*map(list, X[:299]), None]}, {}, "Row 299 of .* has no value in column 'emb'"),
    "hole": ({"emb": [*map(list, X[:299]), [1.0, None, 2.0, 3.0]]}, {}, "Row 299 of .* has a missing number in 'emb'"),
    "ragged": ({"emb": [*map(list, X[:299]), [1.0]]}, {}, "Row 299 of .* has 1 numbers in 'emb' where others have 4"),
    "label": ({"y": [*["a"] * 299, None]}, {}, "Row 299 of .* has no value in column 'y'"),
    "floats": ({"y": [0.5] * 300}, {}, "Column 'y' of .* holds double: labels and keys are whole numbers or texts"),
    "unknown": ({}, {"features": "ebm"}, "Unknown column of .* 'ebm': did you mean 'emb'"),
    "none": ({}, {"features": None}, "Give the column of .* with the features"),
    "odd": ({"d": pa.array([0] * 300, pa.date32())}, {"features": "d"}, "Column 'd' holds date32.day.: features are"),
    "mixed": ({}, {"features": ["key", "y"]}, "Column 'key' does not hold numbers"),
    "image": ({"emb": [b"not an image"] * 300}, {}, "Column 'emb' of row 0 of .* is not a complete image"),
    "empty": ({"emb": [*["word"] * 299, " "]}, {}, "Row 299 of .* has no text in column 'emb'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_columns_are_one_sentence(case: str, tmp_path: Path) -> None:
    columns, named, message = BAD[case]
    pa.parquet.write_table(table(0, 300, **columns), tmp_path / "t.parquet")
    asked = InParts(tmp_path / "t.parquet", **{**NAMED, **named})
    with pytest.raises(AttarError, match=message):
        _ = asked.schema, asked.kind, read(asked)


def test_files_that_differ_are_named(tmp_path: Path) -> None:
    pattern = parquet(tmp_path)
    pa.parquet.write_table(table(0, 300, y=list(range(300))), tmp_path / "9.parquet")
    with pytest.raises(AttarError, match=r"Column 'y' is int64 in .*9.parquet but string in .*0.parquet"):
        _ = InParts(pattern, **NAMED).schema


def test_a_corrupt_page_in_the_middle_names_the_file(tmp_path: Path) -> None:
    pattern = parquet(tmp_path)
    corrupt(tmp_path / "1.parquet", 1, "emb")
    columns = InParts(pattern, **NAMED)
    batches = columns.read(columns.table.segments(), 0)
    assert len(next(batches).numbers) == 300  # the file before it
    with pytest.raises(AttarError, match=r"1.parquet is not a complete table \(.*\): write it again"):
        next(batches)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="ndarray cannot be read in parts"):
        _ = InParts(X, "emb").schema
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(AttarError, match=r"cut.parquet is not a complete table"):
        _ = InParts(tmp_path / "cut.parquet", "emb").schema
