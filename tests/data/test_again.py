"""Data is loaded again as it was, and what a file names is opened only if it is known."""

from dataclasses import replace
from pathlib import Path

import pytest

import attar
from attar.core.errors import AttarError
from attar.data.again import load_again
from attar.data.split import Origin
from tests.known import digits


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("a,b,kind\n" + "".join(f"{k % 5},{k % 7},{'xy'[k % 2]}\n" for k in range(60)))
    return path


@pytest.mark.parametrize("scaling", ["standard", "zca", "none"])
def test_scaling_column_shares_and_seed_are_those_of_then(table: Path, scaling: str) -> None:
    split = attar.load(table, target="kind", val=0.3, test=0.4, seed=5, scaling=scaling)
    assert split.origin is not None
    again = load_again(split.spec, split.origin, table)
    assert again.train.fingerprint == split.train.fingerprint
    assert again.val.fingerprint == split.val.fingerprint
    assert again.test.fingerprint == split.test.fingerprint


def test_the_scaling_is_the_artifact_s_own_whatever_the_origin_says(table: Path) -> None:
    split = attar.load(table, target="kind", scaling="zca")
    assert split.origin is not None
    again = load_again(split.spec, replace(split.origin, scaling="none"), table)
    assert again.spec.transform.kind == "zca"


def test_a_known_name_is_loaded_at_once_and_no_path_is() -> None:
    spec = digits().spec
    assert load_again(spec, digits().origin).train.fingerprint == digits().train.fingerprint
    assert load_again(spec, None).train.fingerprint == digits().train.fingerprint  # by its name
    for origin in (Origin("/etc/passwd"), Origin("hf:owner/name"), Origin("digits", "/etc/passwd")):
        with pytest.raises(AttarError, match="pass that data explicitly"):
            load_again(spec, origin)
    with pytest.raises(AttarError, match="pass that data explicitly"):
        load_again(replace(spec, name="/etc/passwd"), None)


def test_a_separate_test_set_comes_again(table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(table.read_text())
    split = attar.load({"train": table, "test": other}, target="kind")
    assert split.origin is not None
    assert split.origin.test_source == str(other.resolve())
    again = load_again(split.spec, split.origin, {"train": table, "test": other})
    assert again.test.fingerprint == split.test.fingerprint


def test_a_label_column_is_not_asked_of_a_known_data_set() -> None:
    origin = Origin("table.csv", target="kind")
    assert load_again(digits().spec, origin, "digits").test.fingerprint == digits().test.fingerprint


def test_a_split_is_used_as_it_is() -> None:
    assert load_again(digits().spec, None, digits()) is digits()
