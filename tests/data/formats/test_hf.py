from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from attar.core.errors import AttarError
from attar.data import Table
from attar.data.load import load
from tests.data.samples import labels, pixels
from tests.known import HANG, python

datasets = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def _quiet() -> None:
    datasets.disable_progress_bars()


def pictures(n: int = 30) -> Any:
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cow", "ant", "bee"])})
    rows = {"image": [Image.fromarray(image) for image in pixels(n, 6, 5)], "label": labels(n).tolist()}
    return datasets.Dataset.from_dict(rows, features=features)


def test_images_with_named_classes_and_a_test_split(tmp_path: Path) -> None:
    datasets.DatasetDict({"train": pictures(), "test": pictures(9)}).save_to_disk(str(tmp_path / "farm"))
    split = load(tmp_path / "farm", scaling="none")
    assert split.shape == (1, 6, 5)
    assert split.spec.target.names == ("cow", "ant", "bee")
    assert (split.test.x[:, 0] * 255).round().byte().numpy().tolist() == pixels(9, 6, 5).tolist()
    assert split.test.y.tolist() == labels(9).tolist()


def test_numeric_columns_load_like_a_table(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "size": [i / 4 for i in range(30)],
        "depth": list(range(30)),
        "kind": ["a", "b", "c"] * 10,
    }
    datasets.Dataset.from_dict(columns).save_to_disk(str(tmp_path / "farm"))
    arrays = load((np.stack([columns["size"], columns["depth"]], 1), np.array(columns["kind"])))
    assert load(tmp_path / "farm", target="kind").train.fingerprint == arrays.train.fingerprint
    with pytest.raises(AttarError, match="give one of size, depth, kind as target"):
        load(tmp_path / "farm")


def test_one_column_of_arrays_is_the_example(tmp_path: Path) -> None:
    x = pixels(30, 4, 3).astype(np.float32)
    features = datasets.Features({"x": datasets.Array2D((4, 3), "float32"), "y": datasets.Value("int64")})
    datasets.Dataset.from_dict({"x": x, "y": labels(30)}, features=features).save_to_disk(str(tmp_path / "farm"))
    assert load(tmp_path / "farm").train.fingerprint == load((x, labels(30))).train.fingerprint


def test_words_dates_and_missing_values_are_columns_of_a_table(tmp_path: Path) -> None:
    columns = {
        "word": ["a", "b"] * 15,
        "gap": [None, *(k / 4 for k in range(29))],
        "when": [date(2024, 1, 1 + k) for k in range(30)],
        "y": labels(30),
    }
    datasets.Dataset.from_dict(columns).save_to_disk(str(tmp_path / "mixed"))
    element = load(tmp_path / "mixed").spec.element
    assert isinstance(element, Table)
    assert [(field.name, field.kind) for field in element.fields] == [
        ("word", "category"),
        ("gap", "numeric"),
        ("when", "date"),
    ]


def test_splits_without_train_and_unlabelled_examples_are_refused(tmp_path: Path) -> None:
    datasets.DatasetDict({"all": pictures()}).save_to_disk(str(tmp_path / "all"))
    with pytest.raises(AttarError, match="has the splits all: rename"):
        load(tmp_path / "all")
    features = datasets.Features({"x": datasets.Value("float32"), "label": datasets.ClassLabel(names=["a", "b"])})
    columns = {"x": [0.0] * 12, "label": [-1] + [0, 1] * 5 + [0]}
    datasets.Dataset.from_dict(columns, features=features).save_to_disk(str(tmp_path / "none"))
    with pytest.raises(AttarError, match="label -1 at example 0"):
        load(tmp_path / "none")


def test_a_spoiled_folder_is_refused(tmp_path: Path) -> None:
    pictures().save_to_disk(str(tmp_path / "farm"))
    next((tmp_path / "farm").glob("*.arrow")).unlink()
    with pytest.raises(AttarError, match="is not a complete data set"):
        load(tmp_path / "farm")


def run_apart(code: str, folder: Path) -> tuple[str, str]:
    """In a process of its own, since the package reads at import that it must stay offline."""
    setting = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "home")}
    return python(f"import os; os.environ |= {setting}\n{code}").communicate(timeout=HANG)


def test_the_hub_out_of_reach_is_said_in_one_sentence(tmp_path: Path) -> None:
    _, err = run_apart(f"from attar.data import load; load('hf:nobody/nothing', root={str(tmp_path)!r})", tmp_path)
    last = err.strip().splitlines()[-1]
    assert "AttarError: Could not load nobody/nothing from the hub" in last
    assert "save_to_disk" in last


def test_a_data_set_is_read_the_way_the_hub_holds_it(tmp_path: Path) -> None:
    # The package treats a local folder of CSV files like a repository of the hub.
    (tmp_path / "farm").mkdir()
    for part, n in (("train", 30), ("test", 6)):
        rows = [f"{i},{i % 3}" for i in range(n)]
        (tmp_path / "farm" / f"{part}.csv").write_text("\n".join(["size,label", *rows]))
    code = f"""
from attar.data import load
split = load('hf:{tmp_path / "farm"}', root={str(tmp_path)!r}, scaling='none')
print(split.spec.target.names, split.test.x[:, 0].tolist(), split.test.y.tolist())
"""
    out, err = run_apart(code, tmp_path)
    assert "('0', '1', '2') [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] [0, 1, 2, 0, 1, 2]" in out, err
    assert (tmp_path / "hf").is_dir()
