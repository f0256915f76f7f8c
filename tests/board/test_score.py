from dataclasses import replace
from pathlib import Path

import pytest

from attar.board.score import ADAPTER, summarised
from attar.core.cost import Cost
from tests.board.boards import judged, problem

PROMISED = {
    *("data", "method", "per_class", "protocol", "seeds", "accuracy", "nll"),
    *("balanced_accuracy", "ece", "brier", "distance", "gain_over_random", "cpu_seconds", "mb", "bytes"),
}


def test_a_score_has_every_key_that_was_promised(tmp_path: Path) -> None:
    values = ADAPTER.dump_python(judged(problem(tmp_path), "dm", [0.5, 0.6], random=0.4), mode="json")
    assert set(values) >= PROMISED
    assert values["accuracy"] == pytest.approx(0.55)
    assert values["gain_over_random"] == pytest.approx(0.15)
    assert values["distance"] == pytest.approx(0.45)
    assert values["seeds"] == [0, 1]
    assert values["mb"] == 100


def test_each_coreset_counts_once_whatever_the_number_of_its_posteriors(tmp_path: Path) -> None:
    first, second = judged(problem(tmp_path), "dm", [0.2, 0.8]).runs
    runs = [first, replace(first, evaluation=1, accuracy=0.4), second]
    found = summarised(runs, None)
    assert found["accuracy"] == pytest.approx((0.3 + 0.8) / 2)
    assert found["gain_over_random"] is None
    assert summarised([replace(first, made=None), second], None)["cpu_seconds"] is None
    assert summarised([replace(first, distance=None), second], None)["distance"] is None


def test_the_values_of_a_single_coreset_are_its_posteriors(tmp_path: Path) -> None:
    score = judged(problem(tmp_path), "dm", [0.2])
    more = replace(score, runs=[score.runs[0], replace(score.runs[0], evaluation=1, accuracy=0.4)])
    assert more.values() == [0.2, 0.4]
    assert more.half() is not None
    assert score.half() is None


def test_a_seed_that_counts_twice_is_refused(tmp_path: Path) -> None:
    score = judged(problem(tmp_path), "dm", [0.2, 0.3])
    with pytest.raises(ValueError, match="seed 0 counts twice"):
        replace(score, seeds=[0, 0, 1])
    with pytest.raises(ValueError, match="seeds and runs differ"):
        replace(score, seeds=[0, 1, 2])


def test_differences_are_taken_seed_by_seed(tmp_path: Path) -> None:
    made = problem(tmp_path)
    low, high = judged(made, "uniform", [0.1, 0.5]), judged(made, "dm", [0.2, 0.6])
    gap = high.against(low)
    assert gap is not None
    assert gap.difference == pytest.approx(10)
    assert gap.half == pytest.approx(0, abs=1e-6)
    assert gap.seeds == 2


def test_it_prints_what_it_is(tmp_path: Path) -> None:
    score = judged(problem(tmp_path), "dm", [0.5, 0.6], random=0.4)
    assert "dm, 1 per class of digits, honest: accuracy 55.0" in str(score)
    assert "over random +15.0 points" in str(score)


def test_costs_are_means_and_the_highest_memory(tmp_path: Path) -> None:
    first, second = judged(problem(tmp_path), "dm", [0.2, 0.3]).runs
    runs = [replace(first, made=Cost(1, 2, 10**6)), replace(second, made=Cost(1, 4, 3 * 10**6))]
    found = summarised(runs, None)
    assert (found["cpu_seconds"], found["mb"]) == (3, 3)
