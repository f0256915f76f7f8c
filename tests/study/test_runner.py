"""The protocol is honest by construction: one budget, choices on validation, nothing run twice, nothing lost."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attar
from attar.assess.score import made_from
from attar.assess.validation import validation_score
from attar.condense.driver import Step
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.data import Data, Split
from attar.engine import Engine
from attar.experts import Schedule, experts
from attar.infer.diagnose import MixingWarning
from attar.nets.train import Training
from attar.reduce import Plan, plan
from attar.study import Study, StudySpec, compare
from attar.study.cell import Work, evaluation_seed, run_job
from attar.study.grid import Job, grid
from attar.study.prepare import prepare
from attar.study.results import values
from attar.study.runner import run_study, study_coreset
from tests.known import images

QUICK = Training(steps=15, batch=64)
SPEC = StudySpec(methods=(), per_class=1, seeds=0, training=QUICK, draws=1, converged=False)


@pytest.fixture(scope="module")
def split() -> Split:
    return attar.load("digits")


def prepared(spec: StudySpec, split: Split, folder: Path) -> Work:
    return prepare(spec, split, folder, grid(spec))


def test_an_unknown_method_is_refused_before_anything_runs(split: Split, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="did you mean 'dm'"):
        compare({"methods": ["dmm"]}, data=split, folder=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_every_run_is_trained_with_the_same_budget_and_scored_on_all_of_val_and_test(
    split: Split, tmp_path: Path
) -> None:
    study = compare(replace(SPEC, methods="uniform", per_class=2), data=split, folder=tmp_path)
    for run in study.runs:
        assert sum(map(sum, run.test.confusion)) == len(split.test)
        assert sum(map(sum, run.validation.confusion)) == len(split.val)
        assert run.infer_cost.wall > 0
        assert run.infer_cost.memory > 0
    assert [run.size for run in study.runs] == [20, 20, len(split.train)]
    assert study.data["fingerprint"] == split.train.fingerprint
    assert Study.load(tmp_path / "study.json") == study


def test_the_best_selection_is_chosen_on_validation_never_on_test(split: Split, tmp_path: Path) -> None:
    study = compare(SPEC, data=split, folder=tmp_path)
    good, bad = (replace(study.runs[0].test, accuracy=a) for a in (0.9, 0.1))
    runs = [
        replace(run, validation=good if run.method == "herding" else bad, test=bad if run.method == "herding" else good)
        for run in study.runs
    ]
    assert replace(study, runs=runs).best_selection(1) == "herding"


def test_two_workers_give_the_numbers_of_one(split: Split, tmp_path: Path) -> None:
    def scores(workers: int) -> list[float]:
        folder = tmp_path / str(workers)
        study = compare(SPEC, data=split, folder=folder, workers=workers)
        return [run.test.nll for run in study.runs]

    assert scores(1) == pytest.approx(scores(2), rel=1e-4)  # threads a worker differ, so the last bits may


def test_a_failing_run_loses_no_finished_one(split: Split, tmp_path: Path) -> None:
    descent = {"dm": {"lr": 1e30, "steps": 9}}
    spec = replace(SPEC, methods=["uniform", "dm"], network="convnet-d2w32", descent=descent, baselines=False)
    with pytest.raises(AttarError, match="learning rate below"):
        compare(spec, data=split, folder=tmp_path)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["uniform-1-0.json"]


def test_a_checkpoint_is_kept_until_the_run_is_written(split: Split, tmp_path: Path) -> None:
    tables = {"options": {"dm": {"batch": 8}}, "descent": {"dm": {"steps": 2}}}
    spec = SPEC.changed({"methods": "dm", "network": "mlp-d1w8", **tables})
    job, saved = Job("dm", 1, 0), tmp_path / "checkpoints" / "dm-1-0.safetensors"
    with pytest.raises(AttarError, match="smaller learning rate"):  # the coreset is made, and its evaluation fails
        run_job(prepared(replace(spec, training=replace(QUICK, lr=1e30)), split, tmp_path), job)
    assert saved.exists()
    assert not (tmp_path / "runs").exists()
    with pytest.warns(
        UserWarning, match=r"of another recipe: it is kept as dm-1-0\.safetensors\.unreadable-1, and the"
    ):
        run_job(prepared(spec, split, tmp_path), job)  # with another training budget
    assert [path.name for path in saved.parent.iterdir()] == ["dm-1-0.safetensors.unreadable-1"]
    assert (tmp_path / "runs" / "dm-1-0.json").exists()


def test_what_a_sampler_warned_of_is_in_the_study(split: Split, tmp_path: Path) -> None:
    walk: dict[str, Any] = {"sampler": "langevin", "sampler_options": {"step": 1e-6, "warmup": 0, "thin": 1}}
    spec = SPEC.changed({"methods": "uniform", "network": "linear", "draws": 80, "baselines": False, **walk})
    with pytest.warns(MixingWarning, match="not mixed"):
        study = compare(spec, data=split, folder=tmp_path)
    (notes,) = (run.notes for run in Study.load(tmp_path / "study.json").runs)
    assert notes == study.runs[0].notes
    assert notes["rhat"] > 1.1
    assert "not mixed" in notes["warnings"][0]
    assert "label" not in notes  # it started from the prior


def test_a_coreset_for_another_shape_is_refused(split: Split, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b,label\n" + "".join(f"{k % 9},{k % 7},{'xy'[k % 2]}\n" for k in range(40)))
    other = attar.reduce(attar.load(table), "uniform", per_class=1)
    with pytest.raises(AttarError, match="the data that it was made from"):
        study_coreset(other, split, tmp_path / "j", draws=1)


def test_a_coreset_under_another_scaling_is_judged_in_its_own(split: Split, tmp_path: Path) -> None:
    # Same pixels, other scaling: the coreset brings its own, so its scores must not fall to chance.
    zca = attar.load("digits", scaling="zca")
    coreset, job = attar.reduce(zca, "uniform", per_class=20, training=Training(steps=100)), Job("uniform", 20, 0)
    (run,) = run_job(prepare(SPEC, split, tmp_path, [job], given={job: coreset}), job)
    assert run.test.accuracy > 0.8


def test_the_validation_score_is_deterministic_and_sees_good_examples(split: Split) -> None:
    score = validation_score(split.val, attar.network("convnet-d2w32", split.shape, 10), Training(steps=60))
    good = attar.reduce(split, "uniform", per_class=20).data
    wrong = replace(good, y=good.y.flip(0))
    assert score(good) == score(good)
    assert score(good) > 0.6 > score(wrong)


def test_each_coreset_counts_once_however_often_it_is_evaluated(split: Split, tmp_path: Path) -> None:
    study = compare(replace(SPEC, seeds=[0, 1], evaluations=2), data=split, folder=tmp_path)
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
        spec = replace(SPEC, methods=methods, seeds=seeds, options=options, descent=descent, baselines=False)
        return compare(spec, data=split, folder=tmp_path)

    first = study(["dm"], 2, [0])
    grown = study(["dm", "dc"], 2, [0, 1])
    assert [run.method for run in grown.runs] == ["dm", "dm", "dc", "dc"]
    assert grown.runs[0] == first.runs[0]  # it was not run again
    with pytest.raises(AttarError, match="other settings"):
        study(["dm"], 3, [0])


def killed(steps: Iterable[Step], folder: Path) -> Iterator[Step]:
    """An observer that notes the first step that it sees; the first process that looks at step 3 is killed."""
    for number, step in enumerate(steps):
        if number == 0:
            (folder / f"first-{time.time_ns()}").write_text(str(step.number))
        if step.number == 3:
            try:
                (folder / "killed").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        yield step


@pytest.mark.slow
def test_a_comparison_that_loses_a_worker_is_that_of_one_process_to_the_bit(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)  # one thread a worker, as here
    spec = replace(SPEC, methods="dm", seeds=(0, 1), network="mlp-d1w8", baselines=False).stepped(6)
    asked: dict[str, Any] = {"command": "", "checkpoint_every": 0}
    whole = run_study(spec, split, tmp_path / "one", **asked)
    asked |= {"engine": Engine(workers=2), "observers": [partial(killed, folder=tmp_path)]}
    with pytest.warns(RuntimeWarning, match="ended from outside"):
        found = run_study(spec, split, tmp_path / "two", **asked)
    first = [int(path.read_text()) for path in sorted(tmp_path.glob("first-*"))]
    assert sorted(number >= 2 for number in first) == [False, False, True]  # the lost run, from its checkpoint
    for a, b in zip(whole.runs, found.runs, strict=True):
        assert (a.validation, a.test, a.curve) == (b.validation, b.test, b.curve)
        one, two = (Coreset.load(tmp_path / name / str(a.coreset)).data.x for name in ("one", "two"))
        assert torch.equal(one, two)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_diverges_does_not_keep_the_others_from_running(split: Split, tmp_path: Path, workers: int) -> None:
    spec = replace(
        SPEC, methods=["dm", "uniform"], network="linear", descent={"dm": {"steps": 5, "lr": 1e30}}, baselines=False
    )
    with pytest.raises(AttarError, match=r"dm-1-0 diverged; all other runs are finished and kept\. dm-1-0: Step"):
        compare(spec, data=split, folder=tmp_path, workers=workers)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["uniform-1-0.json"]


def test_a_study_can_learn_labels_of_another_data_set(split: Split, tmp_path: Path) -> None:
    base, other = tmp_path / "base.npz", tmp_path / "other.npz"
    for path, seed in ((base, 1), (other, 2)):
        x = np.random.default_rng(seed).integers(0, 16, (60, *split.shape)).astype(np.float32)
        np.savez(path, x=x, y=np.arange(60) % 3)
    spec = replace(SPEC, methods=["label-solve"], seeds=[0, 1], network="linear", base=str(base))
    study = compare(spec, data=split, folder=tmp_path / "s")
    first, second = (run.coreset for run in study.runs if run.method == "label-solve")
    assert first is not None
    assert second is not None
    one, two = (Coreset.load(tmp_path / "s" / name).data.x for name in (first, second))
    given = attar.load(base).train.transformed(split.spec.transform).x
    assert all(any(torch.allclose(row, real, atol=1e-4) for real in given) for row in one)
    assert not torch.equal(one, two)  # every seed draws its own
    with pytest.raises(AttarError, match="other settings"):
        compare(replace(spec, base=str(other)), data=split, folder=tmp_path / "s")


def test_a_coreset_that_was_made_again_is_not_judged_by_old_results(split: Split, tmp_path: Path) -> None:
    first = attar.reduce(split, "uniform", per_class=1, training=QUICK)
    study_coreset(first, split, tmp_path, draws=1, evaluations=1)
    again = replace(first, data=first.data.map(lambda x: x + 1))
    with pytest.raises(AttarError, match="other settings"):
        study_coreset(again, split, tmp_path, draws=1, evaluations=1)


def test_a_study_never_mixes_test_sets(split: Split, tmp_path: Path) -> None:
    spec = replace(SPEC, methods="uniform", baselines=False)
    compare(spec, data=split, folder=tmp_path)
    other = replace(split, test=replace(split.test, y=split.test.y.flip(0)))
    with pytest.raises(AttarError, match="other settings"):
        compare(replace(spec, seeds=[0, 1]), data=other, folder=tmp_path)


def test_a_coreset_of_another_split_is_judged_with_a_warning(split: Split) -> None:
    other = attar.reduce(attar.load("digits", seed=1), "uniform", per_class=1)
    with pytest.warns(UserWarning, match="it may contain validation examples"):
        made_from(other, split)


def tiny() -> Split:
    data = images(12)
    return Split(data[:18], data[18:24], data[24:])


def test_a_file_a_mapping_and_a_spec_give_the_same_study(tmp_path: Path) -> None:
    data, recipe = tiny(), tmp_path / "study.toml"
    recipe.write_text(
        'methods = ["herding"]\nper_class = 1\nseeds = [0]\nnetwork = "linear"\ndraws = 1\nconverged = false\n'
        "training = { steps = 2 }\n"
    )
    fields: dict[str, Any] = {
        "methods": "herding", "per_class": [1], "seeds": 0, "network": "linear", "draws": 1, "training": {"steps": 2},
        "converged": False,
    }  # fmt: skip
    spec = StudySpec(
        methods=("herding",),
        per_class=(1,),
        seeds=(0,),
        network="linear",
        draws=1,
        training=Training(steps=2),
        converged=False,
    )
    studies = [
        compare(source, data=data, folder=tmp_path / str(number))
        for number, source in enumerate((recipe, fields, spec, str(recipe)))
    ]
    assert len({repr(study) for study in studies}) == 1
    assert [study.config for study in studies] == [studies[0].config] * 4
    assert studies[0].command == f"attar.compare({str(recipe)!r}, data=...)"
    assert studies[1].command == studies[2].command
    assert "'network': 'linear'" in studies[1].command
    assert "'data'" not in studies[1].command


def test_data_is_what_load_takes_and_replaces_the_spec_s(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"per_class": 1, "seeds": 0, "network": "linear", "draws": 1, "converged": False}
    spec = StudySpec("nowhere.csv", "nowhere.csv", methods=(), **fields)
    data = tiny()
    study = compare(
        replace(spec, training=QUICK), data=(data.train.x.numpy(), data.train.y.numpy()), folder=tmp_path / "arrays"
    )
    assert study.data["train"] + study.data["val"] + study.data["test"] == len(data.train)
    named = compare(replace(spec, training=QUICK, scaling="zca", val=0.5), data="digits", folder=tmp_path / "named")
    clean = {"imbalance": 1.0, "flip": 0.0}
    assert named.config["loading"] == {"target": None, "scaling": "zca", "val": 0.5, "test": 0.2, "seed": 0, **clean}
    assert named.data["val"] > 500
    with pytest.raises(AttarError, match="no file or folder"):
        compare(spec, folder=tmp_path / "s")
    with pytest.raises(AttarError, match="names no data"):
        compare({"methods": []}, folder=tmp_path / "s")


def test_a_device_that_is_not_there_is_refused_with_a_remedy(tmp_path: Path) -> None:
    for name in ("cuda:7", "meta", "nonsense"):
        with pytest.raises(AttarError, match="use --device cpu"):
            compare(SPEC, data=tiny(), folder=tmp_path / "s", device=name)
    assert not (tmp_path / "s").exists()


def test_data_is_hashed_once_and_every_method_is_planned_once_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []

    class Counted(Data):
        @cached_property
        def fingerprint(self) -> str:
            hashed.append(len(self))
            return super().fingerprint

    planned: list[str] = []

    def counted(*given: Any, **named: Any) -> Plan:
        planned.append(f"{given[1]} {named['per_class']}")
        return plan(*given, **named)

    monkeypatch.setattr("attar.study.prepare.plan", counted)
    data = images(20)
    parts = [Counted(part.x, part.y, spec=part.spec) for part in (data[:30], data[30:42], data[42:])]
    spec = replace(SPEC, per_class=[1, 2], seeds=[0, 1, 2], network="linear", training=Training(steps=2))
    compare(spec, data=Split(*parts), folder=tmp_path)
    assert sorted(size for size in hashed if size >= 12) == [12, 18, 30]
    assert planned == ["uniform 1", "uniform 2", "herding 1", "herding 2"]


def test_evaluation_seeds_meet_no_seed_of_a_user_nor_each_other() -> None:
    found = {evaluation_seed(seed, number) for seed in range(200) for number in range(50)}
    assert len(found) == 200 * 50
    assert not found & set(range(1_000_000))  # 10,000 is a seed that people choose
    assert max(found) < 2**62


def test_experts_of_another_schedule_are_other_settings(tmp_path: Path) -> None:
    data = tiny()
    for seed in (0, 1):
        experts(data, "linear", Schedule(1, 2, seed=seed), folder=tmp_path / f"experts-{seed}")
    spec = SPEC.changed(
        {"methods": "bpc-w", "network": "linear", "baselines": False, "experts": tmp_path / "experts-0"}
    ).stepped(1)
    compare(spec, data=data, folder=tmp_path / "s")
    with pytest.raises(AttarError, match="other settings"):
        compare(replace(spec, experts=tmp_path / "experts-1", seeds=[0, 1]), data=data, folder=tmp_path / "s")
