from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
import torch

import attar
from attar.board.problem import Loading, Problem, fingerprints, problem_of, read_problem, write_problem
from attar.core.errors import AttarError
from attar.data import load
from attar.data.split import Origin
from tests.board.boards import SHORT, coreset, problem
from tests.known import digits


def test_a_problem_is_read_back_and_loads_its_own_split(tmp_path: Path) -> None:
    made = problem(tmp_path)
    found = read_problem(tmp_path / "problems" / "digits.json")
    assert found == made
    assert found.checksum == made.checksum
    assert fingerprints(found.load()) == fingerprints(digits())


def test_the_fingerprint_is_that_of_the_split_and_not_of_the_scaling() -> None:
    assert fingerprints(load("digits", scaling="none")) == fingerprints(digits())
    other = fingerprints(load("digits", seed=1))
    assert other["test"] == fingerprints(digits())["test"]
    assert other["train"] != fingerprints(digits())["train"]


def test_data_that_is_not_that_of_the_problem_is_refused(tmp_path: Path) -> None:
    made = replace(problem(tmp_path), fingerprints={"train": "0", "val": "0", "test": "0"})
    with pytest.raises(AttarError, match="is not what it was made for, so nothing was judged"):
        made.load()


def test_data_that_cannot_be_fetched_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTAR_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr(import_module("attar.data.load"), "provide", fail)
    with pytest.raises(AttarError, match=r"data of the problem digits cannot be loaded, so nothing was judged: no way"):
        replace(problem(tmp_path), data="mnist").load()
    with pytest.raises(AttarError, match="no known data set"):
        replace(problem(tmp_path), data="./mine.npz").load()


def fail(*_: object, **__: object) -> None:
    raise OSError("no way to mnist.")


def test_a_coreset_that_does_not_fit_is_refused_with_the_reason(tmp_path: Path) -> None:
    made, small = problem(tmp_path), coreset()
    made.require_fitting(small, "a")
    with pytest.raises(AttarError, match=r"a has 10 classes and shape \(1, 8, 8\), and the problem digits 10 and \(3,"):
        replace(made, shape=[3, 8, 8]).require_fitting(small, "a")
    with pytest.raises(AttarError, match="is scaled by 'standard', and the problem digits by 'zca'"):
        replace(made, loading=replace(made.loading, scaling="zca")).require_fitting(small, "a")
    with pytest.raises(AttarError, match="has 1 examples per class, and the problem digits is for 10 or 50"):
        replace(made, per_class=[10, 50]).require_fitting(small, "a")
    elsewhere = replace(small, recipe=replace(small.recipe, origin=Origin("digits", test=0.1)))
    with pytest.raises(AttarError, match="with other test examples than those of the problem digits"):
        made.require_fitting(elsewhere, "a")


def test_a_problem_on_texts_names_its_word_vectors_and_only_coresets_with_these_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTAR_DATA", str(tmp_path))
    (tmp_path / "trec").mkdir()
    for name, repeats in (("train_5500.label", 20), ("TREC_10.label", 4)):
        (tmp_path / "trec" / name).write_text(repeats * "NUM:date When did it end ?\nHUM:ind Who did end it ?\n")
    loading = Loading(vectors="learnt")
    learnt, hashed = load("trec6", vectors="learnt"), load("trec6")
    settings = {"network": "embedding-bag", "training": SHORT, "draws": 1, "loading": loading}
    made = problem_of("questions", "Two kinds.", learnt, "trec6", per_class=[1], **settings)
    write_problem(tmp_path, made)
    found = read_problem(tmp_path / "problems" / "questions.json")
    assert found.loading == loading
    assert torch.equal(*(split.spec.transform.tensors()["table"] for split in (found.load(), learnt)))
    found.require_fitting(attar.reduce(learnt, "uniform", per_class=1), "a")
    with pytest.raises(AttarError, match=r"a has other word vectors than .* questions: make .* with --vectors learnt"):
        found.require_fitting(attar.reduce(hashed, "uniform", per_class=1), "a")


def test_problems_on_other_data_have_no_word_vectors_in_their_files(tmp_path: Path) -> None:
    made = problem(tmp_path)
    written = (tmp_path / "problems" / "digits.json").read_text()
    assert "vectors" not in written
    assert made.checksum != replace(made, loading=Loading(vectors="learnt")).checksum


def test_what_is_not_on_record_is_said(tmp_path: Path) -> None:
    made, small = problem(tmp_path), coreset()
    assert made.labels(small) == []
    assert made.labels(replace(small, recipe=replace(small.recipe, origin=None))) == [
        "its training data is not on record"
    ]
    other = replace(small, recipe=replace(small.recipe, origin=Origin("digits", seed=5)))
    assert made.labels(other) == ["made with other validation examples"]


def test_a_problem_with_authors_training_names_it_and_its_source(tmp_path: Path) -> None:
    made = problem(tmp_path)
    for settings in (
        {"protocol": "published"},
        {"way": "centred"},
        {"way": "x", "protocol": "published", "source": "y"},
    ):
        with pytest.raises(ValueError, match="way of training"):
            replace(made, **settings)
    assert isinstance(replace(made, way="centred", protocol="published", source="y"), Problem)


def test_a_file_with_another_name_is_refused(tmp_path: Path) -> None:
    problem(tmp_path)
    moved = (tmp_path / "problems" / "digits.json").rename(tmp_path / "problems" / "other.json")
    with pytest.raises(AttarError, match="holds the problem 'digits'"):
        read_problem(moved)
