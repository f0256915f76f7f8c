"""Damaged and hostile Arrow and Parquet files: the worst outcome is one sentence."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attar.core.errors import AttarError
from attar.data.formats import arrow
from attar.data.load import load
from attar.data.parts import tables
from tests.data.samples import labels

pa = pytest.importorskip("pyarrow")
datasets = pytest.importorskip("datasets")
from pyarrow import parquet  # noqa: E402


@pytest.fixture(autouse=True)
def _quiet() -> None:
    datasets.disable_progress_bars()


def mutated(whole: bytes, seed: int, times: int) -> Iterator[bytes]:
    """The same bytes with a few of them replaced, or cut off."""
    gen = np.random.default_rng(seed)
    for _ in range(times):
        broken = bytearray(whole)
        for place in gen.integers(0, len(whole), 8):
            broken[place] = gen.integers(0, 256)
        yield bytes(broken[: gen.integers(1, len(whole))] if gen.random() < 0.3 else broken)


def folder(path: Path, columns: dict[str, Any] | None = None) -> Path:
    rows = columns or {"words": [f"text {i}" for i in range(60)], "label": [i % 3 for i in range(60)]}
    datasets.Dataset.from_dict(rows).save_to_disk(str(path))
    return path


def said(path: Path) -> str:
    """The sentence for which a file is refused; nothing for one that is read."""
    try:
        load(path)
    except AttarError as error:
        return str(error)
    return ""


def test_damaged_tables_are_refused_or_read(tmp_path: Path) -> None:
    """They must never end the process; some changes fall on values, which are then only other values."""
    place = folder(tmp_path / "farm")
    file = next(place.glob("*.arrow"))
    whole = file.read_bytes()
    for broken in mutated(whole, 0, 3):
        file.write_bytes(broken)
        assert "\n" not in said(place)
    table = pa.table({"size": np.arange(60.0), "label": labels(60)})
    parquet.write_table(table, tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    for broken in mutated(whole, 1, 2):
        (tmp_path / "a.parquet").write_bytes(broken)
        assert "\n" not in said(tmp_path / "a.parquet")


def test_what_the_system_refuses_to_read_is_not_called_damaged(tmp_path: Path) -> None:
    """Here a name that leads to itself, which cannot be opened."""
    file = tmp_path / "a.parquet"
    file.symlink_to(file)
    for read in (
        lambda: arrow.verify([file], tmp_path),
        lambda: tables.Files((str(file),)).segments(),
    ):
        with pytest.raises(AttarError, match=r"Could not read .*the file is unchanged"):
            read()


@pytest.mark.parametrize("end", ["os.abort()", "os.kill(os.getpid(), 11)", "raise RuntimeError"])
def test_a_crash_of_the_library_is_one_sentence(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "crash.py").write_text(f"import os; {end}")
    monkeypatch.setattr(arrow, "PROGRAM", tmp_path / "crash.py")
    with pytest.raises(AttarError, match=r"a\.parquet is not a complete table \(the library that reads it failed"):
        arrow.verify([tmp_path / "a.parquet"], tmp_path / "a.parquet")


def test_offsets_that_point_outside_are_found_before_the_table_is_used(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 1 << 20, 8], np.int32))  # between two texts, far behind the buffer
    words = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcdefgh")])
    batch = pa.record_batch({"words": words, "label": pa.array([0, 1])})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write(batch)
    with pytest.raises(AttarError, match="is not a complete table"):
        arrow.verify([tmp_path / "a.arrow"], tmp_path)


def test_rows_and_texts_that_unpack_to_more_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    word = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, np.int32)), pa.array(["x" * 10**6]))
    for table in (
        pa.table({"text": word, "label": labels(2000)}),
        pa.table({"size": np.zeros(10**6, np.int8), "label": np.zeros(10**6, np.int8)}),
    ):
        parquet.write_table(table, path)
        assert path.stat().st_size < 200_000
        with pytest.raises(AttarError, match=r"a\.parquet needs .* where files may take 20\.0 MB"):
            load(path, max_bytes="20MB")


def test_categories_are_read(tmp_path: Path) -> None:
    kinds = pa.array(["a", "b", "c"] * 10).dictionary_encode()
    parquet.write_table(pa.table({"size": np.arange(30.0), "label": kinds}), tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet").spec.target.names == ("a", "b", "c")


def test_files_outside_the_folder_are_not_opened(tmp_path: Path) -> None:
    place = folder(tmp_path / "farm")
    other = shutil.move(next(place.glob("*.arrow")), tmp_path / "other.arrow")
    state = json.loads((place / "state.json").read_text())
    for name in (str(other), "../other.arrow", "", None, 7):
        (place / "state.json").write_text(json.dumps(state | {"_data_files": [{"filename": name}]}))
        with pytest.raises(AttarError, match=r"state\.json is not of a data set"):
            load(place)
    datasets.DatasetDict({"train": datasets.Dataset.from_dict({"a": [1]})}).save_to_disk(str(tmp_path / "all"))
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["../farm"]}')
    with pytest.raises(AttarError, match=r"dataset_dict\.json is not of a data set"):
        load(tmp_path / "all")


@pytest.mark.parametrize("path", ["/etc/hostname", "http://127.0.0.1:9/a.png", "zip://a.png::http://127.0.0.1:9/b.zip"])
def test_paths_in_rows_are_not_followed(path: str, tmp_path: Path) -> None:
    """Written by hand, because the package would embed the images when it saves them."""
    place = folder(tmp_path / "farm", {"image": ["a"] * 30, "label": [0, 1, 2] * 10})
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = {"image": pa.array([{"bytes": None, "path": path}] * 30, picture), "label": pa.array([0, 1, 2] * 10)}
    about = json.loads((place / "dataset_info.json").read_text())
    about["features"]["image"] = {"_type": "Image"}
    (place / "dataset_info.json").write_text(json.dumps(about))
    file = next(place.glob("*.arrow"))
    table = pa.table(rows).replace_schema_metadata({"huggingface": json.dumps({"info": about})})
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(AttarError, match=r"is the path '.*', which is not followed"):
        load(place)


def test_columns_that_the_package_decodes_are_refused(tmp_path: Path) -> None:
    place = folder(tmp_path / "farm")
    about = json.loads((place / "dataset_info.json").read_text())
    for feature in ({"_type": "Audio"}, {"_type": "List", "feature": {"_type": "Image"}}):
        about["features"]["words"] = feature
        (place / "dataset_info.json").write_text(json.dumps(about))
        with pytest.raises(AttarError, match=r"leave that column out|is not a complete data set"):
            load(place)
