"""`attar select`: picks from data sets and from embeddings, in three formats, and what bad input says."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open

from attar import Coreset
from attar.core import registry
from attar.core.files import read_tensors
from attar.select import select
from tests.cli.conftest import Attar
from tests.known import digits

QUICK = ("--train-steps", "5", "--network", "mlp-d1w8")
X = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
Y = np.repeat([0, 1, 2], [60, 20, 10])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with embeddings, their labels, and some that are broken."""
    arrays = {
        "x": X,
        "y": Y,
        "short": Y[:-1],
        "nan": np.where(np.arange(90)[:, None] == 7, np.nan, X),
        "words": np.array(["a", "b"]),
        "halves": Y + 0.5,
        "flat": X[:, 0],
        "none": X[:0],
        "number": np.float32(3),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.savez(tmp_path / "zipped.npz", x=X)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:200])
    (tmp_path / "text.npy").write_text("not an array")
    return tmp_path


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("method", registry.methods("select"))
def test_every_method_selects_from_a_data_set_and_writes_index_score_class_and_weight(
    method: str, attar: Attar, tmp_path: Path
) -> None:
    trains = "networks" in registry.fields(registry.find(method).build)
    own = ("--networks", "1", "--epochs", "0.1") if trains else ()
    done = attar("select", "digits", "-m", method, "-n", 2, *QUICK, *own, "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    assert f"20 of 1,295 examples of digits by {method}" in done.out
    rows = table(tmp_path / "p.csv")
    assert list(rows[0]) == ["index", "row", "score", "class", "weight"]
    picks, train = [int(row["index"]) for row in rows], digits().train
    assert len(set(picks)) == 20
    assert train.rows is not None
    assert [int(row["row"]) for row in rows] == train.rows[picks].tolist()
    assert [int(row["class"]) for row in rows] == train.y[picks].tolist()
    assert all(np.isfinite(float(row["score"])) and float(row["weight"]) >= 0 for row in rows)


def test_select_picks_what_reduce_keeps(attar: Attar, tmp_path: Path) -> None:
    for method in ("craig", "glister-val", "uniform"):
        attar("select", "digits", "-m", method, "-n", 3, "--seed", 4, *QUICK, "-o", tmp_path / "p.safetensors")
        attar("reduce", "digits", "-m", method, "-n", 3, "--seed", 4, *QUICK, "-o", tmp_path / "c.safetensors")
        picks, _ = read_tensors(tmp_path / "p.safetensors")
        kept = Coreset.load(tmp_path / "c.safetensors")
        assert kept.indices is not None
        assert torch.equal(picks["indices"], kept.indices)
        assert kept.data.weights is None or torch.equal(picks["weights"], kept.data.weights)


def test_a_fraction_is_shared_among_classes_if_asked(attar: Attar, files: Path) -> None:
    given = ("--embeddings", files / "x.npy", "--labels", files / "y.npy", "-m", "craig", "--train-steps", "5")
    counts = {}
    for how in ("--balanced", "--no-balanced"):
        attar("select", *given, "--fraction", "0.1", how, "-o", files / "p.csv")
        counts[how] = np.bincount([int(row["class"]) for row in table(files / "p.csv")], minlength=3).tolist()
    assert counts == {"--balanced": [3, 3, 3], "--no-balanced": [6, 2, 1]}


def test_embeddings_need_no_labels_where_the_method_does_not(attar: Attar, files: Path) -> None:
    words = ("--embeddings", files / "x.npy", "-m", "k-center", "--size", "9")
    assert attar("select", *words, "-o", files / "p.csv").code == 0
    rows = table(files / "p.csv")
    assert [int(row["index"]) for row in rows] == select(X, "k-center", size=9).indices.tolist()
    assert [row["row"] for row in rows] == [row["index"] for row in rows]
    assert {row["class"] for row in rows} == {""}
    assert attar("select", *words, "--part", "30", "-o", files / "parts.csv").code == 0
    assert len(table(files / "parts.csv")) == 9


def test_all_three_files_say_the_same_and_two_say_how_it_was_made(attar: Attar, files: Path) -> None:
    given = ("--embeddings", files / "x.npy", "--labels", files / "y.npy", "-m", "lcmat-s", "--size", "6")
    for ending in ("csv", "npz", "safetensors"):
        attar("select", *given, "--weighted", "true", "--rho", "0.5", "-o", files / f"p.{ending}")
    rows = table(files / "p.csv")
    tensors, _ = read_tensors(files / "p.safetensors")
    with np.load(files / "p.npz", allow_pickle=False) as arrays, safe_open(files / "p.safetensors", "pt") as kept:
        columns = {"indices": "index", "rows": "row", "scores": "score", "classes": "class", "weights": "weight"}
        for name, column in columns.items():
            assert arrays[name].tolist() == tensors[name].tolist()
            assert [float(row[column]) for row in rows] == pytest.approx(arrays[name].tolist())
        recipe = json.loads(str(arrays["recipe"]))
        assert recipe == json.loads(kept.metadata()["recipe"])
    assert float(tensors["weights"].sum()) == pytest.approx(90)
    assert recipe["method"] == "lcmat-s"
    assert recipe["options"].items() >= {"rho": 0.5, "dimensions": 100, "weighted": True, "fit": 0.2}.items()
    assert recipe["budget"]["size"] == 6


def test_picks_are_named_as_in_the_user_s_own_file(attar: Attar, tmp_path: Path) -> None:
    lines = [f"{k % 9},{k % 7},{'xy'[k % 2]}" for k in range(60)]
    (tmp_path / "t.csv").write_text("a,b,label\n" + "\n".join(lines) + "\n")
    assert attar("select", tmp_path / "t.csv", "-m", "uniform", "--size", 9, "-o", tmp_path / "p.csv").code == 0
    rows = table(tmp_path / "p.csv")
    assert [int(row["row"]) % 2 for row in rows] == [int(row["class"]) for row in rows]  # x and y take turns there
    assert [row["row"] for row in rows] != [row["index"] for row in rows]  # some are held out before


def test_pictures_of_a_folder_are_named_by_file(attar: Attar, tmp_path: Path) -> None:
    for k in range(20):
        path = tmp_path / "photos" / "ab"[k % 2] / f"{k}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 12 * k).save(path)
    for ending in ("csv", "npz", "safetensors"):
        words = ("-m", "uniform", "-n", 3, *QUICK, "-o", tmp_path / f"p.{ending}")
        assert attar("select", tmp_path / "photos", *words).code == 0
    names = [row["row"] for row in table(tmp_path / "p.csv")]
    assert all((tmp_path / "photos" / name).is_file() for name in names)
    with np.load(tmp_path / "p.npz") as arrays, safe_open(tmp_path / "p.safetensors", "pt") as kept:
        assert arrays["rows"].tolist() == json.loads(kept.metadata()["rows"]) == names


def test_a_separate_test_file_leaves_more_to_select_from(attar: Attar, tmp_path: Path) -> None:
    for name in ("train", "test"):
        lines = "".join(f"{k % 9},{k % 7},{'xy'[k % 2]}\n" for k in range(50))
        (tmp_path / f"{name}.csv").write_text("a,b,label\n" + lines)
    words = ("select", tmp_path / "train.csv", "-m", "uniform", "-n", 2, "-o", tmp_path / "p.csv")
    assert "4 of 36 examples" in attar(*words).out  # 10 for test, 4 for validation
    assert "4 of 46 examples" in attar(*words, "--test", tmp_path / "test.csv").out
    assert "4 of 26 examples" in attar(*words, "--test", tmp_path / "test.csv", "--val", "0.5").out
    refused = attar(*words, "--val", "2")
    assert refused.code == 2
    assert "between 0 and 1, got 2.0" in refused.err


def test_help_of_a_method_shows_its_options_and_how_weights_are_chosen(attar: Attar) -> None:
    text = attar("select", "--method", "lcmat-s", "--help").out
    assert "--rho" in text
    assert "--weighted" in text
    assert "attar select fashion-mnist --method herding --fraction 0.01 --balanced" in text
    assert "--rho" not in attar("select", "--method", "uniform", "--help").out


def test_show_says_that_examples_have_weights(attar: Attar, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    attar("reduce", "digits", "-m", "lcmat-s", "-n", 2, *QUICK, "--weighted", "true", "-o", path)
    assert "Examples are weighted in training" in attar("show", path).out
    attar("reduce", "digits", "-m", "lcmat-s", "-n", 2, *QUICK, "-o", path)
    assert "weight" not in attar("show", path).out


def test_a_warning_is_a_line(attar: Attar, files: Path) -> None:
    np.save(files / "same.npy", np.ones((9, 2), dtype=np.float32))
    done = attar("select", "--embeddings", files / "same.npy", "-m", "herding", "--size", 2, "-o", files / "p.csv")
    assert done.code == 0
    assert "warning: Every example has the same features" in done.err


BAD = {
    "no method": ("--embeddings x.npy --size 3", "Give a method, such as"),
    "a condenser": ("digits -m dc -n 1", "Unknown method 'dc'"),
    "a typo": ("digits -m lcmats -n 1", "did you mean 'lcmat-s'?"),
    "another method's option": ("digits -m uniform --rho 1 -n 1", "--rho"),
    "out of range": ("digits -m lcmat-s --rho -1 -n 1", "greater than or equal to 0"),
    "nothing to select from": ("-m uniform --size 3", "DATA, such as digits, or --embeddings"),
    "two things to select from": (
        "digits --embeddings x.npy -m uniform --size 3",
        "either DATA, such as digits, or --embeddings",
    ),
    "labels twice": ("digits --labels y.npy -m uniform --size 3", "leave out --labels"),
    "no budget": ("digits -m uniform", "Give the budget as one of"),
    "two budgets": ("digits -m uniform --size 3 --fraction 0.1", "Give the budget as one of"),
    "balanced twice": ("digits -m uniform -n 3 --balanced", "Give the budget as one of"),
    "more than there are": ("--embeddings x.npy -m k-center --size 91", "ask for 1 to 90"),
    "none": ("--embeddings x.npy -m k-center --size 0", "ask for 1 to 90"),
    "a fraction above one": ("--embeddings x.npy -m k-center --fraction 1.5", "between 0 and 1"),
    "below one per class": (
        "--embeddings x.npy --labels y.npy -m k-center --size 2 --balanced",
        "2 picks cannot be divided among 3 classes with 90 examples: ask for 3 to 90",
    ),
    "no such class size": ("--embeddings x.npy --labels y.npy -m k-center -n 11", "ask for fewer"),
    "NaN": ("--embeddings nan.npy -m herding --size 3", "example 7 hold NaN or Inf"),
    "labels missing": ("--embeddings x.npy -m craig --size 3", "This needs labels: give them, or choose"),
    "labels missing for balance": ("--embeddings x.npy -m k-center -n 1", "This needs labels"),
    "too few labels": ("--embeddings x.npy --labels short.npy -m craig --size 3", "give one label per row"),
    "labels that are none": ("--embeddings x.npy --labels halves.npy -m craig --size 3", "array of whole numbers"),
    "validation missing": ("--embeddings x.npy --labels y.npy -m glister-val --size 3", "without -val"),
    "network of embeddings": ("--embeddings x.npy -m uniform --size 3 --network mlp", "leave out the network"),
    "columns of embeddings": ("--embeddings x.npy -m uniform --size 3 --target y", "leave out --target"),
    "no file": ("--embeddings no.npy -m uniform --size 3", "There is no file"),
    "an archive": ("--embeddings zipped.npz -m uniform --size 3", "is not a complete .npy file"),
    "words": ("--embeddings words.npy -m uniform --size 1", "does not hold an array of numbers"),
    "a number": ("--embeddings number.npy -m uniform --size 1", "does not hold an array of numbers"),
    "a file cut short": ("--embeddings cut.npy -m uniform --size 1", "is not a complete .npy file"),
    "a text": ("--embeddings text.npy -m uniform --size 1", "is not a complete .npy file"),
    "one number a row": ("--embeddings flat.npy -m uniform --size 1", "give one row of numbers"),
    "no rows": ("--embeddings none.npy -m uniform --size 1", "give one row of numbers per example"),
    "parts too small": ("--embeddings x.npy -m k-center --size 9 --part 18", "ask for parts of 36"),
    "an ending nobody knows": (
        "digits -m uniform -n 1 -o picks.txt",
        "use a name that ends in .csv, .parquet, .npz, .safetensors",
    ),
    "no such device": ("digits -m uniform -n 1 --device tpu9", "--device cpu"),
}


@pytest.mark.parametrize(("words", "says"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_sentence_and_exit_code_2(
    words: str, says: str, attar: Attar, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    Path("picks.csv").write_text("here before")
    done = attar("select", *words.split())
    assert done.code == 2
    assert says in done.err
    assert "Traceback" not in done.err
    assert Path("picks.csv").read_text() == "here before"


def test_picks_that_are_equally_many_of_skewed_classes_are_warned_of(attar: Attar, files: Path) -> None:
    given = ("--embeddings", files / "x.npy", "--labels", files / "y.npy", "-m", "herding", "-o", files / "p.csv")
    says = "warning: Classes have 10 to 60 examples, and equally many of each are kept, so their frequencies are lost"
    for equal in (("--per-class", 2), ("--size", 6, "--balanced")):
        assert says in " ".join(attar("select", *given, *equal).err.split())
    for other in (("--size", 6), ("--size", 6, "--no-balanced"), ("-n", 2, "--budget", "proportional")):
        assert "warning:" not in attar("select", *given, *other).err


def test_a_scoring_network_that_never_fits_and_wrong_picks_are_warned_of(attar: Attar, tmp_path: Path) -> None:
    quick = ("select", "digits", "-n", 1, "--network", "mlp-d1w8", "-o", tmp_path / "p.csv")
    late = attar(*quick, "-m", "craig", "--fit", "0.9", "--train-steps", 2)
    assert late.code == 0
    assert "warning: The scoring network should reach a training accuracy of 91%" in " ".join(late.err.split())
    wrong = attar(*quick, "-m", "glister", "--fit", "1")
    assert wrong.code == 0
    assert "warning: The scoring network misclassifies" in " ".join(wrong.err.split())
    assert "choose herding or lcmat-s" in " ".join(wrong.err.split())


@pytest.mark.parametrize(
    "method", ["adacore", "craig", "glister", "glister-val", "gradmatch", "gradmatch-val", "lcmat-s"]
)
def test_help_shows_how_the_scoring_network_is_trained_and_read(method: str, attar: Attar) -> None:
    shown = attar("select", "--method", method, "--help").out
    assert "--fit" in shown
    assert "exact|published" in shown
    assert "eval|train" in shown


def test_what_is_not_a_fit_a_gradient_or_a_mode_is_refused(attar: Attar) -> None:
    for flag, value in (("--fit", "0"), ("--fit", "1.5"), ("--gradient", "double"), ("--mode", "test")):
        done = attar("select", "digits", "-m", "craig", "-n", 1, flag, value)
        assert done.code == 2
        assert flag[2:] in done.err


@pytest.mark.parametrize("words", [("digits", "-n", 2, *QUICK), ("--embeddings", "x.npy", "--size", 9)])
def test_a_dry_run_says_memory_and_time_and_writes_nothing(
    words: tuple[Any, ...], attar: Attar, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    done = attar("select", *words, "-m", "k-center", "--dry-run")
    assert done.code == 0
    assert re.search(r"estimated memory, without the libraries: about \d+ MB", done.out)
    assert re.search(r"estimated time: about .* \(cost: a short training", done.out)
    assert sorted(files.iterdir()) == before
