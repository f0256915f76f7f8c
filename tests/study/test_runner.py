"""The protocol is honest by construction: one budget, choices on validation, nothing run twice, nothing lost."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import attar
from attar.assess.score import made_from
from attar.assess.validation import validation_score
from attar.core.errors import AttarError
from attar.data import Split
from attar.infer.diagnose import MixingWarning
from attar.nets.train import Training
from attar.study import Study
from attar.study.results import values
from attar.study.runner import Job, Setting, carry_out, compare, grid, judge, run_job

QUICK = Training(steps=15, batch=64)


@pytest.fixture(scope="module")
def split() -> Split:
    return attar.load("digits")


def test_the_grid_adds_random_subset_selection_and_full_data() -> None:
    jobs = grid(["dm"], [1, 2], [0, 1])
    assert {(job.method, job.per_class) for job in jobs} == {
        (name, size) for name in ("uniform", "herding", "dm") for size in (1, 2)
    } | {("full", None)}
    assert len(jobs) == len({job.key for job in jobs}) == 14
    assert {job.method for job in grid(["dm"], [1], [0], baselines=False)} == {"dm"}


def test_an_unknown_method_is_refused_before_anything_runs(split: Split, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="did you mean 'dm'"):
        compare(split, ["dmm"], [1], folder=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_every_run_is_trained_with_the_same_budget_and_scored_on_all_of_val_and_test(
    split: Split, tmp_path: Path
) -> None:
    study = compare(split, ["uniform"], [2], folder=tmp_path, seeds=[0], training=QUICK, draws=1)
    for run in study.runs:
        assert sum(map(sum, run.test.confusion)) == len(split.test)
        assert sum(map(sum, run.validation.confusion)) == len(split.val)
        assert run.infer_cost.wall > 0
        assert run.infer_cost.memory > 0
    assert [run.size for run in study.runs] == [20, 20, len(split.train)]
    assert study.data["fingerprint"] == split.train.fingerprint
    assert Study.load(tmp_path / "study.json") == study


def test_the_best_selection_is_chosen_on_validation_never_on_test(split: Split, tmp_path: Path) -> None:
    study = compare(split, [], [1], folder=tmp_path, seeds=[0], training=QUICK, draws=1)
    good, bad = (replace(study.runs[0].test, accuracy=a) for a in (0.9, 0.1))
    runs = [
        replace(run, validation=good if run.method == "herding" else bad, test=bad if run.method == "herding" else good)
        for run in study.runs
    ]
    assert replace(study, runs=runs).best_selection(1) == "herding"


def test_two_workers_give_the_numbers_of_one(split: Split, tmp_path: Path) -> None:
    def scores(workers: int) -> list[float]:
        folder = tmp_path / str(workers)
        study = compare(split, [], [1], folder=folder, seeds=[0], training=QUICK, draws=1, workers=workers)
        return [run.test.nll for run in study.runs]

    assert scores(1) == pytest.approx(scores(2), rel=1e-4)  # threads a worker differ, so the last bits may


def test_a_failing_run_loses_no_finished_one(split: Split, tmp_path: Path) -> None:
    setting = Setting(split, tmp_path, "convnet-d2w32", QUICK, 1, descent={"dm": {"lr": 1e30, "steps": 9}})
    with pytest.raises(AttarError, match="learning rate below"):
        carry_out(setting, [Job("uniform", 1, 0), Job("dm", 1, 0)], "test")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["uniform-1-0.json"]


def test_a_checkpoint_is_kept_until_the_run_is_written(split: Split, tmp_path: Path) -> None:
    setting = Setting(split, tmp_path, "mlp-d1w8", QUICK, 1, descent={"dm": {"steps": 2}}, options={"dm": {"batch": 8}})
    job, saved = Job("dm", 1, 0), tmp_path / "checkpoints" / "dm-1-0.safetensors"
    with pytest.raises(AttarError, match="smaller learning rate"):  # the coreset is made, and its evaluation fails
        run_job(replace(setting, training=replace(QUICK, lr=1e30)), job)
    assert saved.exists()
    assert not (tmp_path / "runs").exists()
    saved.unlink()  # it is of another training budget
    run_job(setting, job)
    assert not saved.exists()
    assert (tmp_path / "runs" / "dm-1-0.json").exists()


def test_what_a_sampler_warned_of_is_in_the_study(split: Split, tmp_path: Path) -> None:
    walk: dict[str, Any] = {"sampler": "langevin", "sampler_options": {"step": 1e-6, "warmup": 0, "thin": 1}}
    quick: dict[str, Any] = {"network": "linear", "training": QUICK, "draws": 80, "baselines": False}
    with pytest.warns(MixingWarning, match="not mixed"):
        study = compare(split, ["uniform"], [1], folder=tmp_path, seeds=[0], **walk, **quick)
    (notes,) = (run.notes for run in Study.load(tmp_path / "study.json").runs)
    assert notes == study.runs[0].notes
    assert notes["rhat"] > 1.1
    assert "not mixed" in notes["warnings"][0]
    assert "label" not in notes  # it started from the prior


def test_judge_refuses_a_coreset_for_another_shape(split: Split, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b,label\n" + "".join(f"{k},{k % 7},{'xy'[k % 2]}\n" for k in range(40)))
    other = attar.reduce(attar.load(table), "uniform", per_class=1)
    other.save(tmp_path / "o.safetensors")
    with pytest.raises(AttarError, match="the data it was made from"):
        judge(split, tmp_path / "o.safetensors", folder=tmp_path / "j", draws=1)


def test_a_coreset_under_another_scaling_is_judged_in_its_own(split: Split, tmp_path: Path) -> None:
    # Same pixels, other scaling: the coreset brings its own, so its scores must not fall to chance.
    zca = attar.load("digits", scaling="zca")
    attar.reduce(zca, "uniform", per_class=20, training=Training(steps=100)).save(tmp_path / "z.safetensors")
    setting = Setting(split, tmp_path, "convnet-d2w32", Training(steps=100), 1)
    (run,) = run_job(setting, Job("uniform", 20, 0, str(tmp_path / "z.safetensors")))
    assert run.test.accuracy > 0.8


def test_the_validation_score_is_deterministic_and_sees_good_examples(split: Split) -> None:
    score = validation_score(split.val, attar.network("convnet-d2w32", split.shape, 10), Training(steps=60))
    good = attar.reduce(split, "uniform", per_class=20).data
    wrong = replace(good, y=good.y.flip(0))
    assert score(good) == score(good)
    assert score(good) > 0.6 > score(wrong)


def test_each_coreset_counts_once_however_often_it_is_evaluated(split: Split, tmp_path: Path) -> None:
    study = compare(split, [], [1], folder=tmp_path, seeds=[0, 1], evaluations=2, training=QUICK, draws=1)
    runs = study.groups()["uniform", 1]
    assert [(run.seed, run.evaluation) for run in runs] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert runs[0].coreset == runs[1].coreset != runs[2].coreset
    assert runs[0].test.nll != runs[1].test.nll
    mean = [(runs[k].test.nll + runs[k + 1].test.nll) / 2 for k in (0, 2)]
    assert values(runs, lambda run: run.test.nll) == pytest.approx(mean)
    assert len(values(runs[:2], lambda run: run.test.nll)) == 2


def test_a_study_grows_by_methods_and_seeds_but_never_mixes_settings(split: Split, tmp_path: Path) -> None:
    def study(methods: list[str], steps: int, seeds: list[int]) -> Study:
        descent = {name: {"steps": steps} for name in methods}
        options = {name: {"batch": 4} for name in methods}
        same: dict[str, Any] = {"training": QUICK, "draws": 1, "baselines": False}
        return compare(split, methods, [1], folder=tmp_path, seeds=seeds, options=options, descent=descent, **same)

    first = study(["dm"], 2, [0])
    grown = study(["dm", "dc"], 2, [0, 1])
    assert [run.method for run in grown.runs] == ["dm", "dm", "dc", "dc"]
    assert grown.runs[0] == first.runs[0]  # it was not run again
    with pytest.raises(AttarError, match="other settings"):
        study(["dm"], 3, [0])


def test_a_coreset_that_was_made_again_is_not_judged_by_old_results(split: Split, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    attar.reduce(split, "uniform", per_class=1, training=QUICK).save(path)
    judge(split, path, folder=tmp_path / "j", draws=1, evaluations=1)
    again = attar.reduce(split, "uniform", per_class=1, training=QUICK)
    replace(again, data=again.data.map(lambda x: x + 1)).save(path)
    with pytest.raises(AttarError, match="other settings"):
        judge(split, path, folder=tmp_path / "j", draws=1, evaluations=1)


def test_a_study_never_mixes_test_sets(split: Split, tmp_path: Path) -> None:
    same: dict[str, Any] = {"folder": tmp_path, "training": QUICK, "draws": 1, "baselines": False}
    compare(split, ["uniform"], [1], seeds=[0], **same)
    other = replace(split, test=replace(split.test, y=split.test.y.flip(0)))
    with pytest.raises(AttarError, match="other settings"):
        compare(other, ["uniform"], [1], seeds=[0, 1], **same)


def test_a_coreset_of_another_split_is_judged_with_a_warning(split: Split) -> None:
    other = attar.reduce(attar.load("digits", seed=1), "uniform", per_class=1)
    with pytest.warns(UserWarning, match="validation examples may be in it"):
        made_from(other, split)
