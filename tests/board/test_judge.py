from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import attar
from attar.board import Results, refer
from attar.board.judge import stored
from attar.board.models import LogisticProblem
from attar.board.problem import Loading, problem_of, write_problem
from attar.core.errors import AttarError
from attar.nets.train import Training
from attar.study import StudySpec
from attar.study.runner import run_study
from tests.board.boards import SHORT, coreset, problem, saved
from tests.known import digits


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTAR_REFERENCES", str(tmp_path / "networks"))
    problem(tmp_path / "results")
    return tmp_path / "results"


def scores(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "scores").glob("*.json"))


def test_a_coreset_is_judged_against_random_subsets_and_its_score_is_read_back(folder: Path, tmp_path: Path) -> None:
    files = saved(tmp_path, method="herding")
    seen: list[str] = []
    found = attar.submit(files, results=folder, watch=lambda part: seen.append(part.line))
    assert scores(folder) == ["digits--herding-1", "digits--uniform-1"]
    read = Results.read(folder)
    random = read.random("digits", 1)
    assert random is not None
    assert [score for score in read.scores if score.method == "herding"] == [found]
    assert found.gain_over_random == found.accuracy - random.accuracy
    assert (found.seeds, random.seeds) == ([0, 1], [0, 1, 2, 3, 4])
    assert (found.family, found.coresets) == ("select", [])
    assert found.notes == ["some seeds gave the same examples"]  # herding is not random, nor is training this network
    assert all("on validation" in line for line in seen)
    assert found.bytes == stored(coreset()) == 10 * 64 * 4 + 10 * 8


def test_the_scores_are_those_of_a_study_with_the_same_settings(folder: Path, tmp_path: Path) -> None:
    spec = StudySpec(
        data="digits", methods=("uniform",), per_class=(1,), seeds=(0, 1), network="linear", training=SHORT, draws=1,
        baselines=False,
    )  # fmt: skip
    study = run_study(spec, digits(), tmp_path / "study", command="")
    files = sorted((tmp_path / "study" / "coresets").glob("*.safetensors"))
    found = attar.submit(files, results=folder)
    assert [run.accuracy for run in found.runs] == [run.test.accuracy for run in study.runs]
    assert [run.nll for run in found.runs] == [run.test.nll for run in study.runs]


def test_the_problem_decides_steps_and_batch_and_the_coreset_the_rest(folder: Path) -> None:
    one = coreset()
    other = Training(steps=50, batch=7, lr=SHORT.lr)
    changed = replace(one, recipe=replace(one.recipe, training=other))
    first = attar.submit(one, results=folder, name="a")
    second = attar.submit(changed, results=folder, name="b")
    assert [run.nll for run in first.runs] == [run.nll for run in second.runs]
    slow = replace(one, recipe=replace(one.recipe, training=replace(SHORT, lr=1e-6)))
    assert attar.submit(slow, results=folder, name="c").nll != first.nll


def test_a_single_coreset_has_the_problem_s_number_of_posteriors_and_a_small_learnt_file_is_kept(
    folder: Path, tmp_path: Path
) -> None:
    few = coreset()
    learnt = replace(few, indices=None)
    learnt.save(tmp_path / "mine.safetensors")
    found = attar.submit(tmp_path / "mine.safetensors", results=folder, name="mine")
    assert [run.evaluation for run in found.runs] == [0, 1]
    assert found.coresets == ["digits--mine-1.safetensors"]
    kept = attar.Coreset.load(folder / "coresets" / found.coresets[0])
    assert kept.data.fingerprint == few.data.fingerprint


def test_distances_are_to_the_reference(folder: Path, tmp_path: Path) -> None:
    without = attar.submit(saved(tmp_path), results=folder)
    assert without.distance is None
    refer(Results.read(folder).problem("digits"), folder, epochs=1)
    found = attar.submit(saved(tmp_path), results=folder, replace=True)
    assert found.accuracy == without.accuracy
    assert found.distance is not None
    assert 0 < found.distance < 1
    reference = Results.read(folder).reference("digits")
    assert reference is not None
    assert (reference.kind, reference.draws) == ("converged", 1)
    assert reference.scores["accuracy"] > found.accuracy


def test_a_foreign_set_is_judged_like_any_other_and_says_where_it_is_from(folder: Path) -> None:
    few = coreset().data
    rows = np.eye(10)[few.y.numpy()] - 0.1
    made = attar.Coreset.from_arrays(
        few.x, rows, data=digits(), scaling="standard", convention="centred", training=Training(loss="squared"),
        method="theirs", source="a repository",
    )  # fmt: skip
    found = attar.submit(made, results=folder)
    assert (found.method, found.source, found.family) == ("theirs", "a repository", "")
    assert (found.cpu_seconds, found.mb) == (None, None)


def test_the_authors_way_of_training_is_a_problem_of_its_own(folder: Path) -> None:
    made = problem(
        folder, "digits-theirs", protocol="published", way="centred", source="a file", reference="digits",
        training=replace(SHORT, loss="squared"), options={"scale": 2.0, "every": 2, "patience": 4},
    )  # fmt: skip
    found = attar.submit(coreset(), problem=made.name, results=folder)
    assert found.protocol == "published"
    assert attar.submit(coreset(), results=folder).problem == "digits"  # which is the only honest one


def test_a_bayesian_model_is_judged_by_the_divergence_from_its_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("attar.board.judge"), "CHAINED", 100)
    monkeypatch.setattr(import_module("attar.board.reference"), "DRAWS", 400)
    model = LogisticProblem(2, 60, 1.0)
    split = model.split()
    made = problem_of(
        "model", "Small.", split, "logistic-2", per_class=[5], network="linear", training=SHORT, draws=1, model=model,
        loading=Loading("none"),
    )  # fmt: skip
    write_problem(tmp_path, made)
    refer(made, tmp_path)
    few = attar.reduce(split, "uniform", per_class=5, network="linear", training=SHORT)
    found = attar.submit(few, results=tmp_path, evaluations=1)
    reference = Results.read(tmp_path).reference("model")
    assert reference is not None
    assert reference.rhat is not None
    assert reference.rhat < 1.1
    assert found.divergence is not None
    assert found.divergence["kl"] > 0.01
    assert found.distance is not None


def test_bad_input_is_one_sentence_and_writes_nothing(folder: Path, tmp_path: Path) -> None:
    a, b = saved(tmp_path)
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(a.read_bytes())
    (larger,) = saved(tmp_path, [3], per_class=2)
    for sources, sentence in (
        ([], "There is nothing to judge"),
        (
            [a, b, copy],
            r"uniform-0\.safetensors and .*copy\.safetensors have the seed 0: give one coreset for each seed",
        ),
        ([a, larger], "is of another method or size"),
        ([tmp_path / "none"], "There is no file"),
    ):
        with pytest.raises(AttarError, match=sentence):
            attar.submit(sources, results=folder)
    with pytest.raises(AttarError, match="has only letters, digits"):
        attar.submit(a, results=folder, name="../a")
    (picked,) = saved(tmp_path, [0], method="herding")
    with pytest.raises(AttarError, match="The name uniform is for random subsets, not for herding"):
        attar.submit(picked, results=folder, name="uniform")
    with pytest.raises(AttarError, match="Unknown problem 'digit'"):
        attar.submit(a, results=folder, problem="digit")
    assert scores(folder) == []


def test_another_split_than_the_problem_s_is_refused(folder: Path) -> None:
    with pytest.raises(AttarError, match="is not what it was made for, so nothing was judged"):
        attar.submit(coreset(), results=folder, split=attar.load("digits", seed=1))
    assert scores(folder) == []


def test_a_score_is_replaced_only_if_that_is_asked_for(folder: Path, tmp_path: Path) -> None:
    first = attar.submit(saved(tmp_path), results=folder)
    with pytest.raises(AttarError, match="exists: give another name"):
        attar.submit(saved(tmp_path, [5, 6]), results=folder)
    assert Results.read(folder).scores == [first]
    assert attar.submit(saved(tmp_path, [5, 6]), results=folder, replace=True).seeds == [5, 6]


def test_where_several_problems_fit_or_none_one_must_be_named(folder: Path, tmp_path: Path) -> None:
    problem(folder, "digits-other", draws=2)
    with pytest.raises(AttarError, match="Several problems fit this coreset: name one"):
        attar.submit(coreset(), results=folder)
    with pytest.raises(AttarError, match="No problem has the data, scaling and size of this coreset"):
        attar.submit(coreset(per_class=3), results=folder)
