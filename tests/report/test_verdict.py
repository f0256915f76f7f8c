"""The sentence at the top says no more than the intervals do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from attar.core.cost import Cost
from attar.report import render
from attar.report.rows import rows
from attar.report.verdict import TOO_FEW, verdict
from attar.study.results import Study
from tests.report.reading import text
from tests.report.studies import study

GAINS = {"uniform": 0.70, "dm": 0.85, "full": 0.86, "full-converged": 0.90}


def five(tmp_path: Path, gains: dict[str, float] | None = None, seeds: int = 5, spread: float = 0.01) -> Study:
    """A study whose seeds move together, but for ``spread`` in dm; dm is always best on validation."""
    made = study(tmp_path, ("uniform", "dm", "full"), seeds=seeds)
    runs = []
    for run in made.runs:
        for name in ("full", "full-converged") if run.method == "full" else (run.method,):
            level = (GAINS | (gains or {}))[name] + 0.01 * run.seed + spread * (name == "dm") * (-1) ** run.seed
            chosen = replace(run.validation, accuracy=0.9 if name == "dm" else 0.5)
            steps = {"steps": 100} if name == "full-converged" else {}
            test = replace(run.test, accuracy=level)
            runs.append(replace(run, method=name, validation=chosen, test=test, notes=steps))
    slow = [replace(run, reduce_cost=Cost(360.0, 360.0, 1)) if run.method == "dm" else run for run in runs]
    return replace(made, runs=slow)


def told(made: Study) -> str:
    return " ".join(verdict(made, rows(made))).replace("\u00a0", " ")


def test_differences_that_five_seeds_show_are_told(tmp_path: Path) -> None:
    assert told(five(tmp_path, spread=0.001)) == (
        "87.0 % from 6 images by dm: +15.0 over random, 5.0 below converged full data; made in 6 minutes"
    )


@pytest.mark.parametrize(("level", "says"), [(0.85, "not distinguishable from random ("), (0.95, "9.8 below random")])
def test_a_difference_whose_interval_holds_zero_is_not_told_as_one(tmp_path: Path, level: float, says: str) -> None:
    said = told(five(tmp_path, {"uniform": level}))
    assert says in said
    assert "over random" not in said


def test_too_few_seeds_put_accuracies_side_by_side(tmp_path: Path) -> None:
    said = told(five(tmp_path, seeds=4, spread=0.001))
    assert f"; beside 71.5 % from random ones and 91.5 % from converged full data ({TOO_FEW})" in said
    for word in ("over", "below"):
        assert word not in said


def test_without_convergence_the_full_data_is_that_with_the_same_training(tmp_path: Path) -> None:
    made = five(tmp_path, spread=0.001)
    made = replace(made, runs=[run for run in made.runs if run.method != "full-converged"])
    assert "1.0 below full data with the same training" in told(made)


def test_a_random_subset_that_is_best_is_called_one_and_the_full_data_alone_has_a_sentence(tmp_path: Path) -> None:
    made = five(tmp_path)
    alone = replace(made, runs=[run for run in made.runs if run.method in ("uniform", "full-converged")])
    assert "images picked at random: 20.0 below converged full data" in told(alone)
    full = replace(made, runs=[run for run in made.runs if run.method == "full-converged"])
    assert told(full) == "92.0 % from the full data, trained to convergence"


def test_a_caution_of_the_best_scores_stands_in_the_sentence_and_the_page_has_it(tmp_path: Path) -> None:
    made = five(tmp_path)
    runs = [replace(run, notes={"label": "started <early>"}) if run.method == "dm" else run for run in made.runs]
    page = render(replace(made, runs=runs), tmp_path)
    assert "images by dm, started <early>: +" in text(page)
