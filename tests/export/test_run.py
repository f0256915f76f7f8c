from __future__ import annotations

import csv
import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader

import attar
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.data import Classes, Data, Spec
from attar.data.transform import Standard
from attar.export import FILES, FOLDERS, export
from attar.export.hub import card
from attar.export.pictures import folder_names
from attar.recipe import Recipe
from attar.report.images import contact_sheet

FARM = ("ant", "bee", "cow")
RECIPE = Recipe("herding", 4, 0, "farm", "0f", "mlp", "0.1.0", cost=Cost(1.5, 2.5, 3_000_000))


def coreset(*shape: int, classes: tuple[str, ...] = FARM, soft: bool = False, weighted: bool = True) -> Coreset:
    """Four examples of each class, whose stored values are whole 255ths; the first value tells them apart."""
    n, gen = 4 * len(classes), torch.Generator().manual_seed(0)
    stored = torch.randint(256, (n, *shape), generator=gen) / 255
    stored.flatten(1)[:, 0] = torch.arange(n) / 255
    scaling = Standard.fit(stored)
    y = torch.arange(n) % len(classes)
    labels = 0.8 * nn.functional.one_hot(y, len(classes)) + 0.2 / len(classes) if soft else y
    weights = torch.arange(1.0, n + 1) if weighted else None
    data = Data(scaling.apply(stored), labels, weights, Spec.of(stored.shape[1:], classes, scaling, "farm"))
    return Coreset(data, RECIPE, torch.arange(n) * 7)


IMAGES, FEATURES = coreset(1, 6, 5), coreset(7)


def loaded(path: Path, **options: Any) -> Data:
    """What ``attar.load`` makes of a file: all three sets in one, sorted so that sets can be compared."""
    split = attar.load(path, scaling="none", **options)
    parts = (split.train, split.val, split.test)
    return sorted_(Data(torch.cat([p.x for p in parts]), torch.cat([p.y for p in parts]), spec=split.spec))


def sorted_(data: Data) -> Data:
    return data[data.x.flatten(1)[:, 0].argsort()]


def assert_same(data: Data, of: Coreset) -> None:
    stored = sorted_(Data(of.pixels().reshape(len(of), *data.shape), of.data.hard))
    assert torch.allclose(data.x, stored.x, atol=1e-6)
    assert data.y.tolist() == stored.y.tolist()


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# One line of use


def test_a_plain_loop_trains_on_it() -> None:
    torch_gen, few = torch.Generator().manual_seed(0), coreset(1, 6, 5, weighted=False)
    model = nn.Sequential(nn.Flatten(), nn.Linear(30, 3))
    optimiser = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(40):
        for x, y in DataLoader(few.dataset(), batch_size=4, shuffle=True, generator=torch_gen):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
    assert (model(few.data.x).argmax(1) == few.data.y).all()


@pytest.mark.parametrize("few", [IMAGES, FEATURES, coreset(40, soft=True)])
def test_scikit_learn_fits_it(few: Coreset) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    with pytest.warns(UserWarning, match="leaves out the .*weights"):
        x, y = few.numpy()
    fitted = linear.LogisticRegression().fit(x, y, sample_weight=few.data.weights.numpy())  # type: ignore[union-attr]
    assert fitted.score(x, y) > 0.4


# Arrays and tables


@pytest.mark.parametrize("few", [IMAGES, FEATURES, coreset(3, 5, 4)])
def test_arrays_are_read_by_numpy_and_by_load(few: Coreset, tmp_path: Path) -> None:
    path = few.export(tmp_path / "farm.npz")
    with np.load(path, allow_pickle=False) as arrays:
        named = {"columns"} if few is FEATURES else set()
        assert set(arrays) == {"x", "y", "weights", "indices", "classes", *named}
        assert np.allclose(arrays["x"], few.pixels().numpy())
        assert arrays["y"].tolist() == few.data.y.tolist()
        assert arrays["weights"].tolist() == few.data.weights.tolist()  # type: ignore[union-attr]
        assert arrays["indices"].tolist() == few.indices.tolist()  # type: ignore[union-attr]
        assert arrays["classes"].dtype.kind == "U"
        assert tuple(arrays["classes"]) == FARM
    assert_same(loaded(path), few)


def test_soft_labels_stay_beside_the_hard_ones(tmp_path: Path) -> None:
    few = coreset(7, soft=True, weighted=False)
    path = export(few, tmp_path / "arrays", kind="npz")
    assert path == tmp_path / "arrays"
    with np.load(path, allow_pickle=False) as arrays:
        assert np.array_equal(arrays["soft"], few.data.y.numpy())
        assert (arrays["soft"].argmax(1) == arrays["y"]).all()
        assert "weights" not in arrays
    assert_same(loaded(path.rename(tmp_path / "arrays.npz")), few)


@pytest.mark.parametrize("few", [IMAGES, FEATURES, coreset(7, soft=True)])
def test_a_table_has_features_and_label_and_tells_the_rest_apart(few: Coreset, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = few.export(tmp_path / "farm.parquet")
    data = loaded(path, target="label")
    assert data.shape == (few.data.x[0].numel(),)
    assert_same(data, few)
    about = json.loads(parquet.read_schema(path).metadata[b"attar"])
    assert about["classes"] == list(FARM)
    assert about["shape"] == list(few.data.shape)
    assert about["weights"] == few.data.weights.tolist()  # type: ignore[union-attr]
    assert about["indices"] == few.indices.tolist()  # type: ignore[union-attr]


def test_the_list_says_which_examples_and_how_much_each_counts(tmp_path: Path) -> None:
    few = coreset(2, classes=('a "quoted", name', "käse"))
    rows = lines(few.export(tmp_path / "list.csv"))
    assert [int(row["index"]) for row in rows] == [7 * i for i in range(8)]
    assert [row["class"] for row in rows] == ['a "quoted", name', "käse"] * 4
    assert [float(row["weight"]) for row in rows] == [float(i) for i in range(1, 9)]
    learnt = lines(replace(coreset(2, weighted=False), indices=None).export(tmp_path / "list.csv"))
    assert {(row["index"], row["weight"]) for row in learnt} == {("", "1.0")}
    assert [int(row["label"]) for row in learnt] == [0, 1, 2] * 4


@pytest.mark.parametrize("keyed", [False, True], ids=["numbers", "keys"])
def test_examples_are_named_as_in_the_user_s_data(keyed: bool, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    given, order = coreset(1, 6, 5, weighted=False).data, torch.randperm(12, generator=torch.Generator().manual_seed(1))
    keys = {row: f"{row}.png" for row in range(12)} if keyed else None
    train = replace(given, rows=torch.arange(12), keys=keys)[order]
    few = attar.reduce(train, "uniform", per_class=2, network="linear")
    assert few.indices is not None
    places, numbers = few.indices.tolist(), order[few.indices].tolist()
    wanted = [f"{row}.png" if keyed else row for row in numbers]
    assert places != numbers
    assert few.rows == wanted
    assert torch.equal(few.dataset()[:][0], given.x[numbers])
    assert np.array_equal(few.numpy()[0], given.x[numbers].flatten(1).numpy())
    few.save(tmp_path / "few.safetensors")
    assert Coreset.load(tmp_path / "few.safetensors").rows == wanted
    with np.load(few.export(tmp_path / "few.npz")) as arrays:
        assert arrays["rows"].tolist() == wanted
    metadata = parquet.read_schema(few.export(tmp_path / "few.parquet")).metadata
    assert json.loads(metadata[b"attar"])["rows"] == wanted
    for path in (few.export(tmp_path / "few.csv"), few.export(tmp_path / "few", "folder") / "examples.csv"):
        assert [row["row"] for row in lines(path)] == list(map(str, wanted))
        assert [int(row["index"]) for row in lines(path)] == places


def test_classes_without_names_get_their_numbers(tmp_path: Path) -> None:
    few = replace(FEATURES, data=Data(FEATURES.data.x, FEATURES.data.y))
    with np.load(few.export(tmp_path / "farm.npz")) as arrays:
        assert arrays["classes"].tolist() == ["0", "1", "2"]


# Pictures


@pytest.mark.parametrize("channels", [1, 3])
def test_a_folder_of_images_keeps_every_pixel(channels: int, tmp_path: Path) -> None:
    few = coreset(channels, 6, 5)
    folder = few.export(tmp_path / "farm", kind="folder")
    data = loaded(folder)
    assert data.spec.target.names == FARM
    assert data.shape == (channels, 6, 5)
    assert_same(data, few)
    rows = lines(folder / "examples.csv")
    for number, row in enumerate(rows):
        with Image.open(folder / row["class"] / f"{number:02d}.png") as image:
            pixels = np.asarray(image).reshape(6, 5, channels).transpose(2, 0, 1)
        assert np.allclose(pixels / 255, few.pixels()[number].numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "classes",
    [
        ("T-shirt/top", "Trouser", "Pullover"),
        ("a/b", "a:b"),
        ("../../up", ".hidden", ""),
        ("Cow", "cow"),
        ("map", "train"),
        tuple(map(str, range(12))),
        ("字" * 300, "b" * 300),
    ],
)
def test_any_class_names_become_folders_that_are_read_in_label_order(classes: tuple[str, ...], tmp_path: Path) -> None:
    few = coreset(1, 3, 3, classes=classes)
    folder = few.export(tmp_path / "in" / "farm", kind="folder")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert len([path for path in folder.iterdir() if path.is_dir()]) == len(classes)
    assert_same(loaded(folder), few)


def test_safe_and_sorted_names_are_kept() -> None:
    assert folder_names(FARM) == list(FARM)
    assert folder_names(("T-shirt/top", "Trouser")) == ["T-shirt_top", "Trouser"]
    assert folder_names(("b", "a")) == ["0-b", "1-a"]
    assert folder_names(("aux", "b")) == ["0-aux", "1-b"]


def test_the_contact_sheet_is_the_one_of_the_report(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="A contact sheet leaves out the weights"):
        path = IMAGES.export(tmp_path / "farm.PNG")
    with Image.open(path) as image:
        expected = contact_sheet(IMAGES.pixels(), IMAGES.data.hard, FARM)
        assert image.format == "PNG"
        assert np.array_equal(np.asarray(image), np.asarray(expected))
    plain = coreset(1, 3, 3, classes=("two\nlines", "b"), weighted=False)
    assert plain.export(tmp_path / "two.png").is_file()


def test_a_list_of_examples_holds_weights_and_soft_labels(tmp_path: Path) -> None:
    few = coreset(1, 3, 3, soft=True)
    for row, target, weight in zip(lines(few.export(tmp_path / "f.csv")), few.data.y, range(1, 13), strict=True):
        assert [float(row[f"target {name}"]) for name in FARM] == pytest.approx(target.tolist())
        assert float(row["weight"]) == weight


def test_feature_vectors_are_no_pictures(tmp_path: Path) -> None:
    for kind in ("png", "folder"):
        with pytest.raises(AttarError, match=r"shape \(7,\) are not gray or colour images: export them as npz"):
            FEATURES.export(tmp_path / "farm", kind)
    assert list(tmp_path.iterdir()) == []


# Hugging Face


@pytest.mark.parametrize("few", [IMAGES, FEATURES, coreset(3, 5, 4, soft=True)])
def test_a_hub_folder_is_read_by_datasets_and_by_load(
    few: Coreset, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.enable_progress_bars()
    folder = few.export(tmp_path / "farm", kind="hf")
    assert capfd.readouterr().err == ""
    assert not datasets.are_progress_bars_disabled()
    table = datasets.load_from_disk(str(folder))
    assert table.features["label"].names == list(FARM)
    assert table["label"][:] == few.data.hard.tolist()
    if few is not FEATURES:
        assert isinstance(table.features["image"], datasets.Image)
    data = loaded(folder, target="label")
    assert data.spec.target.names == FARM
    assert_same(data, few)
    assert [float(row["weight"]) for row in lines(folder / "examples.csv")] == few.data.weights.tolist()  # type: ignore[union-attr]


def test_the_card_tells_size_classes_method_recipe_and_cost() -> None:
    yaml = pytest.importorskip("yaml")
    _, front, text = card(IMAGES).split("---\n", 2)
    assert yaml.safe_load(front)["size_categories"] == ["n<1K"]
    assert yaml.safe_load(front)["task_categories"] == ["image-classification"]
    for words in (
        "12 (4 per class)",
        "3: ant, bee, cow",
        "| herding |",
        "1.5 s",
        "2.5 s",
        "3 MB",
        r"attar 0\.1\.0",
    ):
        assert words in text
    recipe = json.loads(text.split("```json\n")[1].split("\n```")[0])
    assert (recipe["method"], recipe["fingerprint"], recipe["training"]["steps"]) == ("herding", "0f", 300)


def test_the_card_escapes_what_comes_from_a_file() -> None:
    yaml = pytest.importorskip("yaml")
    evil = "x\n---\n# <script>alert(1)</script> | [a](b) `c` \n```\n{0}"
    spec = replace(IMAGES.data.spec, target=Classes((evil, "bee", "cow")))
    recipe = replace(RECIPE, data=evil, method=evil, options={evil: evil})
    text = card(Coreset(replace(IMAGES.data, spec=spec), recipe))
    body = text.split("---\n\n", 1)[1]
    assert yaml.safe_load(text.split("\n---\n\n")[0].removeprefix("---\n"))["pretty_name"] == f"{evil} in 12 examples"
    marks = [line for line in body.splitlines() if line.startswith(("```", "---", "# "))]
    assert marks[1:] == ["```python", "```", "```json", "```"]
    assert "<script>" not in body.split("```json")[0]
    assert r"\[a\]\(b\)" in body
    assert json.loads(body.split("```json\n")[1].split("\n```")[0])["options"] == {evil: evil}


# Places


def test_kinds_are_found_by_suffix_and_unknown_ones_refused(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="Unknown export 'parket': did you mean 'parquet'"):
        FEATURES.export(tmp_path / "farm", "parket")
    with pytest.raises(AttarError, match="Unknown export 'jpg'"):
        IMAGES.export(tmp_path / "farm.jpg")
    with pytest.raises(AttarError, match="no suffix that gives the format"):
        IMAGES.export(tmp_path / "farm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_that_holds_anything_is_left_alone(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "farm"
    target.mkdir()
    IMAGES.export(target, kind)  # an empty one may be filled
    before = sorted(target.rglob("*"))
    with pytest.raises(AttarError, match="not an empty folder"):
        IMAGES.export(target, kind)
    assert sorted(target.rglob("*")) == before
    (tmp_path / "file").write_text("mine")
    with pytest.raises(AttarError, match="not an empty folder"):
        IMAGES.export(tmp_path / "file", kind)
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["farm", "file"]


def test_folders_are_as_open_as_others(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    mode = stat.S_IMODE(IMAGES.export(tmp_path / "farm", "folder").stat().st_mode)
    assert mode == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("kind", [*FILES, *FOLDERS])
def test_what_fails_midway_leaves_nothing_behind(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(AttarError, match=r"no space left.*free space or choose another place"):
        coreset(1, 6, 5, weighted=False).export(tmp_path / "farm", kind)
    assert list(tmp_path.iterdir()) == []


# tables


def test_rows_of_a_table_are_exported_as_values_and_come_back(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "age": [None if k % 7 == 0 else 20 + k % 9 for k in range(60)],
            "weight": [k % 5 / 4 for k in range(60)],  # the name of a column of the list
            "job": [("cook", "clerk", None)[k % 3] for k in range(60)],
            "since": pandas.to_datetime([f"2024-01-{1 + k % 28:02}" for k in range(60)]),
            "kind": ["ab"[k % 2] for k in range(60)],
        }
    )
    split = attar.load(frame, target="kind")
    few = attar.reduce(split, "uniform", per_class=6)
    wanted = frame.iloc[few.rows].reset_index(drop=True)
    listed = pandas.read_csv(few.export(tmp_path / "t.csv"))
    table = pandas.read_parquet(few.export(tmp_path / "t.parquet"))
    hub = pytest.importorskip("datasets").load_from_disk(str(few.export(tmp_path / "hub", kind="hf"))).to_pandas()
    assert listed["class"].tolist() == wanted["kind"].tolist()
    for name in ("age", "weight", "job", "since"):
        for found in (listed["weight value" if name == "weight" else name], table[name], hub[name]):
            same = pandas.to_datetime(found) if name == "since" else found
            known = [None if pandas.isna(value) else value for value in same]
            assert known == [None if pandas.isna(value) else value for value in wanted[name]]
    about = json.loads(pytest.importorskip("pyarrow.parquet").read_schema(tmp_path / "t.parquet").metadata[b"attar"])
    assert np.array_equal(np.array(about["numbers"], np.float32), few.data.x.numpy())
    assert about["columns"] == list(split.spec.element.columns)  # type: ignore[attr-defined]
    with np.load(few.export(tmp_path / "t.npz")) as arrays:
        assert np.array_equal(arrays["x"], few.pixels().numpy())
        assert arrays["columns"].tolist() == about["columns"]
