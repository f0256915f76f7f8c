"""Benchmarks run a spec as it is, keep what they ran, and say when they only publish it again."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import attar
import benchmarks
from attar.board.problem import read_problem
from attar.core.files import read_json
from attar.experts import SMALL, experts
from attar.nets.train import Training
from attar.study import Study, StudySpec
from benchmarks import (
    RECIPES,
    RESULTS,
    board,
    forecasts,
    papers,
    recipe,
    samplers,
    tune_experts,
    tune_rates,
    vbpc_levers,
)
from benchmarks.__main__ import main

SPEC = StudySpec(
    data="digits",
    scaling="none",
    val=0.3,
    methods=("uniform",),
    per_class=1,
    seeds=0,
    network="linear",
    training=Training(steps=2),
    sampler="laplace",
    sampler_options={"precision": 3.0},
    draws=2,
    evaluations=2,
    transfer="mlp-d1w4",
    baselines=False,
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "WORK", tmp_path / "work")
    monkeypatch.setattr(benchmarks, "RESULTS", tmp_path / "results")


def test_no_field_of_a_spec_is_dropped(tmp_path: Path) -> None:
    study = benchmarks.carry_out(SPEC, "made", workers=1)
    plain = SPEC.plain()
    kept = ("network", "training", "sampler", "sampler_options", "draws", "evaluations")
    assert {name: study.config[name] for name in kept} == {name: plain[name] for name in kept}
    assert study.config["loading"]["scaling"] == "none"
    assert study.config["loading"]["val"] == 0.3
    assert [run.method for run in study.runs] == ["uniform"] * 2
    assert (tmp_path / "work" / "made" / "transfer.json").exists()
    assert study.command == "python -m benchmarks made"


def test_what_was_run_is_kept_and_a_second_call_says_that_it_only_publishes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = replace(SPEC, transfer=())
    written = benchmarks.publish(benchmarks.carry_out(spec, "made", workers=1), "made")
    assert {path.name for path in written} == {"study.json", "table.csv", "accuracy.svg", "report.html"}
    assert (
        'class="map-data"' not in (tmp_path / "results" / "made" / "report.html").read_text()
    )  # committed pages are small
    assert "published again" not in capsys.readouterr().err
    runs = {path: path.stat().st_mtime_ns for path in (tmp_path / "work" / "made" / "runs").iterdir()}
    assert runs
    again = benchmarks.carry_out(spec, "made", workers=1)
    assert "only published again; --fresh runs them anew" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in runs} == runs
    assert again == Study.load(tmp_path / "results" / "made" / "study.json")


def test_fresh_removes_what_a_benchmark_kept_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("table5", "digits"):
        (tmp_path / "work" / name).mkdir(parents=True)
    monkeypatch.setattr("benchmarks.table5.main", list)  # which would take an hour
    main(["table5"])
    assert (tmp_path / "work" / "table5").exists()
    main(["table5", "--fresh"])
    assert not (tmp_path / "work" / "table5").exists()
    assert (tmp_path / "work" / "digits").exists()


def test_the_benchmark_of_samplers_runs_only_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(samplers, "SAMPLERS", ("ensemble",))
    monkeypatch.setattr(samplers, "NETWORK", "linear")
    monkeypatch.setattr(samplers, "DRAWS", 1)
    monkeypatch.setattr(samplers, "SEEDS", (0,))
    split = attar.load("digits")
    first = samplers.measured(split, tmp_path)
    monkeypatch.setattr(samplers, "SEEDS", (0, 1))
    both = samplers.measured(split, tmp_path)
    assert [run["seed"] for run in both] == [0, 1]
    assert both[0] == first[0]  # its cost too, so it was not run again
    assert "published again" not in capsys.readouterr().err
    assert samplers.measured(split, tmp_path) == both
    assert "only published again; --fresh runs them anew" in capsys.readouterr().err


def test_levers_of_vbpc_are_compared_with_the_baseline_or_a_longer_run_seed_by_seed() -> None:
    accuracy = {("baseline", 0): 0.5, ("baseline", 1): 0.7, ("flips", 0): 0.6, ("flips", 1): 0.8}
    accuracy |= {("steps-2000", 0): 0.8, ("steps-2000", 1): 0.9}
    accuracy |= {("steps-2000-lr-0.03", 0): 0.7, ("steps-2000-lr-0.03", 1): 0.8}
    runs = [
        {"data": "a", "per_class": 1, "lever": lever, "seed": seed, "accuracy": value, "nll": 1.0, "ece": 0.1}
        for (lever, seed), value in accuracy.items()
    ]
    base, flips, _, higher = vbpc_levers.differences(runs)
    assert (base["accuracy"]["difference"], base["seeds"]) == (0, 2)
    assert flips["accuracy"]["mean"] == pytest.approx(0.7)
    assert flips["accuracy"]["difference"] == pytest.approx(0.1)
    assert flips["accuracy"]["half"] == pytest.approx(0, abs=1e-6)  # 0.1 for every seed, though seeds differ by 0.2
    assert higher["against"] == "steps-2000"
    assert higher["accuracy"]["difference"] == pytest.approx(-0.1)


def test_a_run_of_a_lever_reads_validation_data_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = attar.load("digits")
    blind = replace(whole, test=whole.test.map(lambda x: x * float("nan")))
    monkeypatch.setattr(vbpc_levers, "_loaded", lambda data, scaling: blind)
    monkeypatch.setattr(vbpc_levers, "WORK", tmp_path)
    monkeypatch.setattr(vbpc_levers, "STEPS", 3)
    lever = vbpc_levers.Lever(network="convnet-d1w4")
    monkeypatch.setattr(vbpc_levers, "GRID", {("fashion-mnist", 1): {"baseline": lever}})
    kept = vbpc_levers._kept("fashion-mnist", 1, "baseline", 0)
    assert [run["lever"] for run in kept] == ["baseline", *vbpc_levers.INFERENCE]
    assert all(0 < run["accuracy"] < 1 and run["nll"] > 0 for run in kept)
    monkeypatch.setattr(vbpc_levers, "_runs", None)
    assert vbpc_levers._kept("fashion-mnist", 1, "baseline", 0) == kept  # from its file


def test_settings_of_experts_are_tried_on_validation_data_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = attar.load("digits")
    blind = replace(whole, test=whole.test.map(lambda x: x * float("nan")))
    store = experts(blind, "convnet-d1w4", replace(SMALL, trajectories=1), root=tmp_path / "experts")
    monkeypatch.setattr(tune_experts, "WORK", tmp_path)
    monkeypatch.setattr(tune_experts, "NETWORK", "convnet-d1w4")
    first = tune_experts.run(blind, store, "bpc-w", "0.2 ahead, 10 steps", 1, 1, 0)
    assert first["steps"] == 3  # of 10 steps on the examples each, as long as one of 30
    assert 0 < first["accuracy"] < 1
    monkeypatch.setattr(attar, "reduce", None)
    assert tune_experts.run(blind, store, "bpc-w", "0.2 ahead, 10 steps", 1, 1, 0) == first  # from its file


def test_exponents_of_costs_are_fitted_to_all_runs_of_a_method() -> None:
    runs = [
        {
            "problem": asdict(problem),
            "seconds": 1e-6 * problem.examples**2 * problem.side * problem.steps,
            "bytes": 7 * problem.side**2 * problem.classes**0.5,
        }
        for problem in forecasts.POINTS
    ]
    found = forecasts.fitted(runs)
    powers = {"examples": 2, "side": 0.5, "classes": 0, "per_class": 0, "steps": 1}  # of the numbers of an image, side²
    assert found["seconds"]["exponents"] == pytest.approx(powers, abs=1e-9)
    assert found["bytes"]["exponents"] == pytest.approx(
        powers | {"examples": 0, "side": 1, "classes": 0.5, "steps": 0}, abs=1e-9
    )
    assert found["seconds"]["off"] == pytest.approx(1)


def test_most_committed_forecasts_are_within_a_factor_of_two_of_the_runs() -> None:
    found = read_json(RESULTS / "forecasts" / "forecasts.json")
    runs = [run for kind in ("forecasts", "of_embeddings", "of_tables") for run in found[kind].values()]
    ratios = [run["forecast"] / run["seconds"] for run in runs if run["seconds"] >= 0.1]
    assert len(ratios) >= 20
    assert sum(0.5 <= ratio <= 2 for ratio in ratios) >= 0.9 * len(ratios)
    assert all(1 / 3 <= ratio <= 3 for ratio in ratios)
    peaks = [run["forecast_bytes"] / run["bytes"] for run in runs if "bytes" in run]
    assert len(peaks) >= 20
    assert sum(0.5 <= ratio <= 2 for ratio in peaks) >= 0.9 * len(peaks)


def test_a_study_of_some_methods_keeps_their_settings_alone() -> None:
    whole = recipe("papers/mnist")
    names = ("dm", "mtt")
    part = papers._some(whole, names)
    assert tuple(part.methods) == names
    assert part.options == {name: whole.options[name] for name in names}
    assert part.descent == {name: whole.descent[name] for name in names}
    assert not part.variants


def test_every_recipe_of_the_papers_is_a_part_of_their_benchmark() -> None:
    named = {path.stem for path in (RECIPES / "papers").glob("*.toml")}
    assert named == {*papers.STUDIES, papers.PROTOCOL} < set(papers.PARTS)


@pytest.mark.parametrize(
    ("steps", "ends"),
    [(1, [1]), (3, [1, 2, 3]), (30, None), (1500, [75 * (i + 1) for i in range(20)])],
)
def test_a_learning_curve_has_the_mean_loss_of_windows_that_cover_all_steps(
    steps: int, ends: list[int] | None, tmp_path: Path
) -> None:
    (logged := tmp_path / "log.jsonl").write_text(
        "".join(json.dumps({"step": step + 1, "loss": float(step)}) + "\n" for step in range(steps)), encoding="utf-8"
    )
    found = board.curve(logged)
    assert ends is None or found["steps"] == ends
    assert found["steps"][-1] == steps
    assert found["steps"] == sorted(set(found["steps"]))
    lengths = [end - start for start, end in zip([0, *found["steps"]], found["steps"], strict=False)]
    assert max(lengths) - min(lengths) <= 1
    assert found["loss"][0] == (lengths[0] - 1) / 2
    total = sum(n * loss for n, loss in zip(lengths, found["loss"], strict=True))
    assert total == pytest.approx(steps * (steps - 1) / 2)


def test_the_curve_of_a_coreset_from_an_earlier_call_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(board, "WORK", tmp_path)
    monkeypatch.setattr(board, "CURVES", tmp_path / "curves")
    digits = next(entry for entry in board.ENTRIES if entry.name == "digits")
    entry, split = replace(digits, methods={"dm": {"steps": 2}}, curves=True), attar.load("digits")
    for _ in range(2):  # the second call finds the coreset
        path = board._coreset(entry, split, "dm", 1, 0)
        (curve,) = (tmp_path / "curves").iterdir()
        assert (curve.stem, read_json(curve)["steps"]) == (path.stem, [1, 2])
        curve.unlink()
    board._coreset(replace(entry, curves=False), split, "dm", 1, 0)
    assert not list((tmp_path / "curves").iterdir())


def test_settings_by_size_are_those_of_methods_that_learn() -> None:
    digits = next(entry for entry in board.ENTRIES if entry.name == "digits")
    entry = replace(digits, sized={10: {"lr": 0.5}}, sized_options={10: {"batch": 32}})
    assert entry.settings("vbpc", 1) == ({"batch": 256}, {"steps": 100})
    assert entry.settings("vbpc", 10) == ({"batch": 32}, {"steps": 100, "lr": 0.5})
    assert entry.settings("uniform", 10) == ({}, {})


def test_problems_on_the_board_have_the_settings_of_their_entries() -> None:
    for entry in board.ENTRIES:
        path = board.ROOT / "problems" / f"{entry.name}.json"
        if path.exists():
            kept = read_problem(path)
            assert kept.about == entry.about
            assert (kept.network, kept.training, kept.draws) == (entry.network, entry.training, entry.draws)
            assert (tuple(kept.per_class), kept.reference) == (entry.per_class, entry.reference)
            assert kept.loading.scaling == entry.scaling


def test_learning_rates_are_compared_with_the_first_and_with_random_images_seed_by_seed() -> None:
    accuracy = {("uniform", None): (0.5, 0.7), ("bpc-cd", 0.05): (0.6, 0.8), ("bpc-cd", 0.02): (0.55, 0.75)}
    runs = {key: dict(enumerate({"accuracy": value} for value in values)) for key, values in accuracy.items()}
    random, first, second = tune_rates.table(runs)
    assert not {"random", "first"} & random.keys()
    assert first["random"]["difference"] == pytest.approx(10)
    assert "first" not in first
    assert second["first"]["difference"] == pytest.approx(-5)
    assert second["first"]["half"] == pytest.approx(0, abs=1e-6)  # 5 points for every seed, though seeds differ by 20
    assert second["accuracy"] == pytest.approx(65)
