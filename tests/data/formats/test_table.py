from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attar.core.errors import AttarError
from attar.data import Tokens
from attar.data.load import load
from tests.data.samples import labels

ROWS = [(i / 4, -i, ("ant", "bee", "cow")[i % 3]) for i in range(30)]


def write_csv(path: Path, header: str, rows: list[Any]) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return path


def write_parquet(path: Path, columns: dict[str, Any]) -> Path:
    pytest.importorskip("pyarrow.parquet").write_table(pytest.importorskip("pyarrow").table(columns), path)
    return path


def test_csv_round_trip(tmp_path: Path) -> None:
    split = load(write_csv(tmp_path / "farm.csv", "size,depth,label", ROWS), scaling="none")
    assert split.spec.name == "farm"
    assert split.spec.target.names == ("ant", "bee", "cow")
    for part in (split.train, split.val, split.test):
        i = part.x[:, 0] * 4
        assert (part.x[:, 1] == -i).all()
        assert (part.y == i.long() % 3).all()


def test_csv_and_parquet_and_arrays_of_the_same_numbers_load_alike(tmp_path: Path) -> None:
    size, depth, label = zip(*ROWS, strict=True)
    csv = load(write_csv(tmp_path / "farm.csv", "size,depth,label", ROWS))
    parquet = load(write_parquet(tmp_path / "farm.parquet", {"label": label, "size": size, "depth": depth}))
    arrays = load((np.stack([size, depth], 1), np.array(label)))
    assert csv.train.fingerprint == parquet.train.fingerprint == arrays.train.fingerprint


def test_whole_number_labels_are_classes_in_order_of_value(tmp_path: Path) -> None:
    rows = [(i, (-1, 2, 10)[i % 3]) for i in range(30)]
    csv = load(write_csv(tmp_path / "farm.csv", "size,y", rows), scaling="none")
    assert csv.spec.target.names == ("-1", "2", "10")
    assert (csv.train.y == csv.train.x[:, 0].long() % 3).all()
    columns = {"size": [row[0] for row in rows], "y": [row[1] for row in rows]}
    assert load(write_parquet(tmp_path / "farm.parquet", columns)).spec.target.names == csv.spec.target.names


def test_the_label_column_is_the_target_or_the_one_whose_name_says_so(tmp_path: Path) -> None:
    rows = [(i % 2, i % 3) for i in range(30)]
    path = write_csv(tmp_path / "farm.csv", "kind,Class", rows)
    assert load(path).classes == 3
    assert load(path, target="kind").classes == 2
    with pytest.raises(AttarError, match="no column 'sort': give one of kind, Class as target"):
        load(path, target="sort")
    with pytest.raises(
        AttarError, match=r"no column called label, target, class or y: give one of kind, sort as target"
    ):
        load(write_csv(path, "kind,sort", rows))
    with pytest.raises(AttarError, match="several columns that could be the label: give one of y, label"):
        load(write_csv(path, "y,label", rows))
    with pytest.raises(AttarError, match="names a column twice"):
        load(write_csv(path, "y,y", rows))


def test_a_test_table_is_matched_by_class_name(tmp_path: Path) -> None:
    train = write_csv(tmp_path / "train.csv", "size,depth,label", ROWS)
    test = write_csv(tmp_path / "test.csv", "size,depth,label", [(0, 0, "cow"), (1, 1, "bee")])
    assert load({"train": train, "test": test}).test.y.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((0, "1e999", "ant"), "Column 'depth' has an infinite value in line 32 of"),
        ((0, 1, ""), "Column 'label' has a missing"),
        ((0, 1), "Line 32 of .* has 2 values where the first row names 3"),
        ((0, '1"', '"ant'), "is not a CSV file"),
    ],
)
def test_a_bad_row_is_refused_by_column_and_line(row: tuple[Any, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=words):
        load(write_csv(tmp_path / "farm.csv", "size,depth,label", [*ROWS, row]))


def test_labels_that_are_fractions_are_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "farm.csv", "size,depth", [row[:2] for row in ROWS])
    with pytest.raises(AttarError, match=r"Column 'size' of .* holds fractions"):
        load(path, target="size")


@pytest.mark.parametrize("content", [b"", b"size,label\n", b"label\nant\nbee\n", b"\xff\xfe\x00label"])
def test_a_table_without_rows_columns_or_text_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "farm.csv").write_bytes(content)
    with pytest.raises(AttarError):
        load(tmp_path / "farm.csv")


def test_a_byte_order_mark_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "farm.csv", "label,size", [(row[2], row[0]) for row in ROWS])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\n\n")
    assert load(path).spec.target.names == ("ant", "bee", "cow")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([float("inf"), *map(float, range(29))], "infinite value in row 0 of column 'size'"),
        ([[1, 2]] * 30, "Column 'size' of .* holds values of type ndarray: convert or drop that column"),
    ],
)
def test_a_bad_parquet_column_is_refused(column: list[Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=words):
        load(write_parquet(tmp_path / "farm.parquet", {"size": column, "y": labels(30)}))


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "farm.parquet", {"size": labels(30), "y": labels(30)})
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(AttarError, match=r"farm\.parquet is not a complete table"):
        load(path)


def test_a_parquet_file_of_labels_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="no feature column"):
        load(write_parquet(tmp_path / "farm.parquet", {"y": labels(30)}))


# texts

FILMS = [(f"a {word} film, number {k}", word) for k in range(15) for word in ("good", "bad")]


def write_films(path: Path, column: str = "text") -> Path:
    lines = [f'{k},"{text}",{label}' for k, (text, label) in enumerate(FILMS)]
    path.write_text("\n".join([f"id,{column},label", *lines]) + "\n", encoding="utf-8")
    return path


def test_a_column_called_text_holds_the_examples_and_the_others_are_named(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"texts in column 'text': id is not used"):
        csv = load(write_films(tmp_path / "films.csv"))
    assert isinstance(csv.spec.element, Tokens)
    assert csv.spec.element.text(csv.train.x[0].tolist()).startswith("a ")
    columns = {"Sentence": [text for text, _ in FILMS], "label": [label for _, label in FILMS]}
    parquet = load(write_parquet(tmp_path / "films.parquet", columns))
    assert parquet.train.fingerprint == csv.train.fingerprint
    frame = pytest.importorskip("pandas").DataFrame(columns)
    assert load(frame).train.fingerprint == csv.train.fingerprint


def test_texts_of_a_table_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "films.csv"
    path.write_bytes(b"text,label\n" + b"sch\xf6n,up\nschlecht,down\n" * 20)
    with pytest.raises(AttarError, match=r"films\.csv is not a CSV file in UTF-8 .*: save it in UTF-8"):
        load(path)


def test_an_empty_text_of_a_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "films.csv"
    path.write_text("text,label\n" + "".join(f"{text[:10]},{label}\n" for text, label in FILMS) + "  ,bad\n")
    with pytest.raises(AttarError, match="has an empty text, example 30: fill it in or leave it out"):
        load(path)
    with pytest.raises(AttarError, match="has an empty text, example 2: fill it in or leave it out"):
        load((["good", "bad", " ", "good"] * 9, ["up", "down"] * 18))
    columns = {"text": [None, *(text for text, _ in FILMS)], "y": ["bad", *(label for _, label in FILMS)]}
    with pytest.raises(AttarError, match="has an empty text, example 0: fill it in"):
        load(pytest.importorskip("pandas").DataFrame(columns))


def test_numbers_in_a_column_called_text_are_numbers(tmp_path: Path) -> None:
    split = load(write_csv(tmp_path / "pages.csv", "text,width,label", ROWS), scaling="none")
    assert split.shape == (2,)
