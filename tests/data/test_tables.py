"""Tables of several kinds of columns: what is inferred, what becomes of it, and back to valid rows."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attar
from attar.core.errors import AttarError
from attar.data import Table, Tokens
from attar.data.split import Split
from attar.data.tables import parse
from attar.data.transform import Standard

pandas = pytest.importorskip("pandas")

SIZES = ["small", "medium", "large"]
NOTES = ["arrived late and left early", "arrived on time with a friend", "never came to the party at all"]


def people(n: int = 60) -> Any:
    """Two classes that age and job tell apart, with every kind of column and with gaps."""
    return pandas.DataFrame(
        {
            "age": [None if k % 9 == 0 else 20 + 30 * (k % 2) + k % 7 for k in range(n)],
            "job": [None if k % 11 == 3 else ("cook", "clerk")[k % 2] if k % 5 else "pilot" for k in range(n)],
            "size": [SIZES[k % 3] for k in range(n)],
            "member": [k % 4 < 2 for k in range(n)],
            "since": [date(2020, 1 + k % 12, 1 + k % 28).isoformat() for k in range(n)],
            "income": [round(1000.5 * (k % 13) / 7, 2) for k in range(n)],
            "label": [("poor", "rich")[k % 2] for k in range(n)],
        }
    )


def kinds(split: Split) -> dict[str, str]:
    assert isinstance(split.spec.element, Table)
    return {field.name: field.kind for field in split.spec.element.fields}


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    people().to_csv(path, index=False)
    return path


KINDS = {
    "age": "numeric",
    "job": "category",
    "size": "category",
    "member": "boolean",
    "since": "date",
    "income": "numeric",
}


def test_kinds_are_inferred_alike_from_csv_tsv_parquet_and_pandas(csv: Path, tmp_path: Path) -> None:
    frame = people()
    frame.to_parquet(tmp_path / "people.parquet")
    frame.to_csv(tmp_path / "people.tsv", sep="\t", index=False)
    frame.to_csv(tmp_path / "semicolons.csv", sep=";", index=False)
    first = attar.load(csv)
    assert kinds(first) == KINDS
    places = [tmp_path / name for name in ("people.parquet", "people.tsv", "semicolons.csv")]
    for other in (*places, frame, (frame.drop(columns="label"), frame["label"])):
        assert attar.load(other).train.fingerprint == first.train.fingerprint
    assert str(first.spec.element) == "2 numeric; category: job (3), size (3); boolean: member; date: since"


def test_the_user_overrides_what_is_inferred_by_text_or_by_mapping(csv: Path) -> None:
    text = attar.load(csv, columns="age:category, size:small<medium<large,since:skip")
    asked = {"age": "category", "size": SIZES, "since": "skip"}
    mapping = attar.load(csv, columns=asked)
    assert kinds(mapping)["age"] == "category"
    assert kinds(mapping)["size"] == "ordinal"
    assert "since" not in kinds(mapping)
    assert text.train.fingerprint == mapping.train.fingerprint
    assert mapping.origin is not None
    assert mapping.origin.columns == {"age": "category", "size": tuple(SIZES), "since": "skip"}


def test_every_training_row_comes_back_as_the_user_wrote_it() -> None:
    frame = people()
    split = attar.load(frame, columns={"size": SIZES})
    assert isinstance(split.spec.element, Table)
    for part in (split.train, split.val, split.test):
        back = split.spec.element.decode(split.spec.stored(part.x))
        assert part.rows is not None
        for name, values in back.items():
            for row, value in zip(part.rows.tolist(), values, strict=True):
                wanted = frame[name][row]
                if name == "since":
                    wanted = date.fromisoformat(wanted)
                assert value == wanted or (value is None and pandas.isna(wanted)), (name, row)


def test_numbers_are_standardised_and_levels_stay_zero_or_one() -> None:
    split = attar.load(people())
    names = split.spec.element.columns  # type: ignore[attr-defined]
    assert names == (
        *("age", "age=missing", "job=clerk", "job=cook", "job=pilot", "job=other", "job=missing"),
        *("size=large", "size=medium", "size=small", "size=other", "member", "since", "income"),
    )
    x = dict(zip(names, split.train.x.T, strict=True))
    assert isinstance(split.spec.transform, Standard)
    for name in ("age", "since", "income"):
        assert abs(float(x[name].mean())) < 1e-5
        assert float(x[name].std(correction=0)) == pytest.approx(1, abs=1e-4)
    for name in set(names) - {"age", "since", "income"}:
        assert set(x[name].tolist()) <= {0.0, 1.0}
    jobs = torch.stack([x[name] for name in names if name.startswith("job=")])
    assert (jobs.sum(0) == 1).all()


def test_learnt_rows_decode_to_valid_values_and_keep_their_numbers() -> None:
    split = attar.load(people(), columns={"size": SIZES})
    coreset = attar.reduce(split, "dm", per_class=3, descent={"steps": 3, "init": "noise", "lr": 3.0})
    frame = people()
    rows = pandas.DataFrame(coreset.values())
    assert list(rows) == list(frame)[:-1]
    assert set(rows["job"].dropna()) <= {"clerk", "cook", "pilot", "other"}
    assert set(rows["size"]) <= set(SIZES)
    assert set(rows["member"]) <= {True, False}
    assert all(date(2020, 1, 1) <= day <= date(2020, 12, 28) for day in rows["since"])
    ages = rows["age"].dropna()
    assert ((ages >= 20) & (ages <= 56) & (ages == ages.round())).all()
    element = split.spec.element
    assert isinstance(element, Table)
    jobs = coreset.pixels()[:, [name.startswith("job=") for name in element.columns]]
    assert not bool(((jobs == 0) | (jobs == 1)).all())  # the numbers themselves are fractions


def test_columns_survive_a_file_and_decide_how_other_data_is_read(csv: Path, tmp_path: Path) -> None:
    split = attar.load(csv)
    attar.reduce(split, "uniform", per_class=2).save(tmp_path / "c.safetensors")
    coreset = attar.Coreset.load(tmp_path / "c.safetensors")
    assert coreset.data.spec.element == split.spec.element
    other = people(40)
    other["job"] = "sailor"
    with pytest.warns(
        UserWarning, match=r"values of the .* set of the data given are not among those of training \(job: "
    ):
        again = attar.load(other, like=coreset.data.spec)
    assert again.spec.element == split.spec.element
    assert set(again.spec.element.decode(again.spec.stored(again.test.x))["job"]) == {"other"}  # type: ignore[attr-defined]


def test_a_category_unseen_in_training_is_other_and_counted() -> None:
    train, test = people(), people(20)
    test.loc[[1, 2], "job"] = "sailor"
    test.loc[3, "income"] = None
    with pytest.warns(UserWarning, match=r"3 values of the test set .* \(job: 2, income: 1\): they count as 'other'"):
        split = attar.load({"train": train, "test": test})
    assert isinstance(split.spec.element, Table)
    rows = split.spec.element.decode(split.spec.stored(split.test.x))
    assert rows["job"][1:3] == ["other", "other"]
    mean = float(split.spec.stored(split.train.x)[:, -1].mean())
    assert rows["income"][3] == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize("name", ["Unnamed: 0", "", "index", "number"])
def test_an_index_that_pandas_saved_is_left_out_with_a_word(name: str, tmp_path: Path) -> None:
    frame = people()
    frame.insert(0, name, np.arange(len(frame)) + 0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(UserWarning, match=f"Column '{name}' .* numbers the rows and is left out"):
        assert kinds(attar.load(tmp_path / "t.csv")) == KINDS
    assert name in kinds(attar.load(tmp_path / "t.csv", columns={name: "numeric"}))


def test_a_column_without_values_is_left_out_and_nothing_else_is_lost() -> None:
    frame = people()
    frame["empty"] = None
    with pytest.warns(UserWarning, match="Column 'empty' .* has no value in training and is left out"):
        split = attar.load(frame)
    assert split.train.fingerprint == attar.load(people()).train.fingerprint
    only = frame[["empty", "label"]]
    with pytest.warns(UserWarning, match="is left out"), pytest.raises(AttarError, match="no column with a value"):
        attar.load(only)


def test_ten_thousand_categories_become_a_hundred_and_other() -> None:
    frame = pandas.DataFrame({"id code": [f"c{k:05}" for k in range(10_000)], "label": ["a", "b"] * 5000})
    frame.loc[:199, "id code"] = "common"
    kept, new = r"has 7,\d+ categories: the 100 most frequent are kept", r"are not among those of training \(id code: "
    with (
        pytest.warns(UserWarning, match=kept),
        pytest.warns(UserWarning, match=f"of the validation set .* {new}"),
        pytest.warns(UserWarning, match=f"of the test set .* {new}"),
    ):
        split = attar.load(frame)
    assert isinstance(split.spec.element, Table)
    assert len(split.spec.element.fields[0].levels) == 101
    assert {"common", "other"} <= set(split.spec.element.decode(split.spec.stored(split.train.x))["id code"])


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"jop": "category"}, r"Unknown column of .* 'jop': did you mean 'job'\?"),
        ({"job": "categorical"}, r"Unknown kind of column 'job' 'categorical': did you mean 'category'\?"),
        ({"job": "numeric"}, "Column 'job' of .* holds '(cook|clerk|pilot)', which is not a number: correct it"),
        ({"job": "date"}, "which is not a date such as 2024-12-31"),
        ({"income": "date"}, "Column 'income' of .* holds numbers, not dates"),
        ({"size": "ordinal"}, "The order of column 'size' of .* is not known: give its values in order"),
        ({"size": ["small", "large"]}, "holds 'medium', which is not in its order small < large: add it"),
        ({"job": "boolean"}, "is read as boolean and has 3 values, not two"),
        (dict.fromkeys(KINDS, "skip"), "has no feature column"),
        ("job", r"--columns is NAME:KIND, separated by commas, such as age:numeric,job:category; got 'job'"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_in_one_sentence(schema: Any, words: str) -> None:
    with pytest.raises(AttarError, match=words):
        attar.load(people(), columns=schema)


def test_a_schema_for_data_without_columns_is_refused() -> None:
    with pytest.raises(AttarError, match="digits has no columns, so columns="):
        attar.load("digits", columns={"age": "numeric"})


def test_a_test_table_without_a_column_is_refused() -> None:
    with pytest.raises(AttarError, match=r"The test set of .* has no column 'job', which the training data has"):
        attar.load({"train": people(), "test": people(20).drop(columns="job")})


def test_codes_with_leading_zeros_are_categories_and_words_for_missing_are_missing(tmp_path: Path) -> None:
    lines = [f"{('01234', '99999', '?')[k % 3]},{('1', 'NA')[k % 2]},{'ab'[k % 2]}" for k in range(30)]
    (tmp_path / "t.csv").write_text("zip,n,label\n" + "\n".join(lines) + "\n")
    split = attar.load(tmp_path / "t.csv")
    assert kinds(split) == {"zip": "category", "n": "numeric"}
    assert isinstance(split.spec.element, Table)
    rows = split.spec.element.decode(split.spec.stored(split.train.x))
    assert set(rows["zip"]) == {"01234", "99999", None}
    assert set(rows["n"]) == {1, None}


def test_types_of_pandas_and_parquet_are_believed(tmp_path: Path) -> None:
    n = 30
    frame = pandas.DataFrame(
        {
            "grade": pandas.Categorical([SIZES[k % 3] for k in range(n)], SIZES, ordered=True),
            "when": pandas.to_datetime(["2024-01-01 10:30", "2024-03-05 23:15", None] * 10),
            "count": pandas.array([None, *range(n - 1)], dtype="Int64"),
            "flag": pandas.array([True, None, False] * 10, dtype="boolean"),
            "NA": ["NA", "DE"] * 15,  # Namibia is no missing value where there are types
            "label": ["a", "b"] * 15,
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet"):
        split = attar.load(source)
        assert kinds(split) == {
            "grade": "ordinal",
            "when": "date",
            "count": "numeric",
            "flag": "boolean",
            "NA": "category",
        }
        assert isinstance(split.spec.element, Table)
        assert split.spec.element.fields[0].levels == tuple(SIZES)
        rows = split.spec.element.decode(split.spec.stored(split.train.x))
        assert set(rows["when"]) == {datetime(2024, 1, 1, 10, 30), datetime(2024, 3, 5, 23, 15), None}
        assert set(rows["flag"]) == {True, False, None}
        assert set(rows["NA"]) == {"NA", "DE"}


def test_texts_beside_other_columns_are_words_and_alone_they_are_the_example() -> None:
    frame = people(40)[["age", "label"]]
    frame["note"] = [f"{NOTES[k % 3]} {k}" for k in range(40)]
    split = attar.load(frame)
    assert kinds(split) == {"age": "numeric", "note": "text"}
    assert isinstance(split.spec.element, Table)
    words = split.spec.element.decode(split.spec.stored(split.train.x))["note"][0].split()
    assert {"arrived", "left", "late"} <= set(words) or {"arrived", "friend"} <= set(words) or "party" in words
    assert isinstance(attar.load(frame[["note", "label"]]).spec.element, Tokens)
    named = frame.rename(columns={"note": "text"})
    with pytest.warns(UserWarning, match="age is not used; text:text among the columns reads a table of all"):
        assert isinstance(attar.load(named).spec.element, Tokens)
    assert kinds(attar.load(named, columns="text:text")) == {"age": "numeric", "text": "text"}


@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_real_tables_keep_their_columns_and_values(name: str, tmp_path: Path) -> None:
    from sklearn import datasets

    frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    frame.to_csv(tmp_path / "t.csv")  # with its index, as people save it
    with pytest.warns(UserWarning, match="numbers the rows and is left out"):
        split = attar.load(tmp_path / "t.csv")
    plain = attar.load((frame.drop(columns="target").to_numpy(), frame["target"].to_numpy()))
    assert torch.equal(split.train.x, plain.train.x)
    coreset = attar.reduce(split, "uniform", per_class=5)
    kept = pandas.DataFrame(coreset.values())
    assert list(kept) == list(frame)[:-1]
    assert np.allclose(kept, frame.iloc[coreset.rows, :-1], rtol=1e-4, atol=1e-6)


def test_a_damaged_description_of_columns_is_refused(csv: Path, tmp_path: Path) -> None:
    from attar.core.files import read_tensors, write_tensors

    attar.reduce(attar.load(csv), "uniform", per_class=2).save(tmp_path / "c.safetensors")
    tensors, header = read_tensors(tmp_path / "c.safetensors")
    for old, new in (
        ('"kind": "date"', '"kind": "when"'),
        ('"high": ', '"high": 1e99'),
        ('"levels": [', '"levels": [7, '),
    ):
        assert old in header["spec"]
        write_tensors(tmp_path / "d.safetensors", tensors, {**header, "spec": header["spec"].replace(old, new)})
        with pytest.raises(AttarError, match="is corrupt or incompatible"):
            attar.Coreset.load(tmp_path / "d.safetensors")


def test_a_schema_as_text_takes_what_follows_the_last_colon() -> None:
    assert parse("a:b:numeric, size : s < m ,") == {"a:b": "numeric", "size": ("s", "m")}


def test_a_posterior_predicts_rows_of_a_frame_by_the_names_of_their_columns() -> None:
    frame = people()
    split = attar.load(frame)
    coreset = attar.reduce(split, "uniform", per_class=10, training=attar.Training(steps=100))
    posterior = attar.infer(coreset, draws=2)
    shuffled = frame[["label", *reversed(KINDS)]]
    told = posterior.predict_proba(shuffled)
    assert np.allclose(told, posterior.predict_proba(frame))
    assert split.test.rows is not None
    assert np.allclose(told[split.test.rows.numpy()], posterior.predict(split.test.x).numpy(), atol=1e-5)
    with pytest.raises(AttarError, match="The given set of the DataFrame has no column 'job'"):
        posterior.predict_proba(frame.drop(columns="job"))
    with pytest.warns(UserWarning, match=r"60 values of the given set .* \(job: 60\): they count as 'other'"):
        posterior.predict_proba(frame.assign(job="sailor"))


def test_two_columns_of_one_name_are_refused() -> None:
    frame = pandas.DataFrame(np.zeros((20, 2)), columns=["a", "a"])
    with pytest.raises(AttarError, match="names a column twice among a, a: rename one"):
        attar.load((frame, ["x", "y"] * 10))
