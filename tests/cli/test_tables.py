"""Tables for a terminal: they fit 80 columns, and say what their figures are."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from attar.cli.tables import cost_table, score_table, summary
from attar.study import Study
from tests.report.studies import study


def made_up(folder: Path, seeds: int) -> Study:
    made = study(folder, seeds=seeds)
    long = {"steps": 600, "rising": False}
    longer = [replace(run, method="full-converged", notes=long) for run in made.runs if run.method == "full"]
    config = {**made.config, "network": "convnet-d3w32"}
    return replace(made, runs=[*made.runs, *longer], config=config)


def shown(found: Study) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(score_table(found), cost_table(found))
    return capture.get()


def test_the_scores_of_a_study_fit_eighty_columns(tmp_path: Path) -> None:
    text = shown(made_up(tmp_path, 3))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    heads = next(line for line in text.splitlines() if line.lstrip().startswith("method"))
    assert heads.split() == ["method", "n", "accuracy", "balanced", "worst", "NLL", "ECE", "Brier"]
    assert "full-converged: all training data for 600 steps, chosen on validation" in text
    assert "most frequent training class: 33.3 %" in text
    assert "± is half the width of the 95 % t-interval" in text


def test_orders_are_told_with_five_seeds_and_not_with_three(tmp_path: Path) -> None:
    assert "too few seeds to say which row is above another" in shown(made_up(tmp_path, 3))
    five = shown(made_up(tmp_path, 5))
    assert "dm, 2 per class, against uniform: above, by" in five
    assert "too few seeds" not in five


def test_an_evaluation_shows_classes_and_the_floor_of_the_ece(tmp_path: Path) -> None:
    scores = [run.test for run in made_up(tmp_path, 3).runs[:3]]
    text = summary(scores, 0)
    for name in ("accuracy", "balanced", "worst", "nll", "ece", "brier"):
        assert f"{name} 0." in text
    assert f"(calibrated: {sum(s.ece_floor or 0 for s in scores) / 3:.3f})" in text
    assert "most frequent training class: 0.333" in text
