"""What to expect of a method, and which one a goal takes: cases worked by hand."""

from math import exp, inf

import pytest

from attar.recommend.choose import MARGIN, Expectation, distance, is_known, nearest, ranking
from attar.recommend.evidence import About, Evidence, Problem, Score, Settings

HERE = About("image", 1000, 10, 1)


def score(accuracy: float, nll: float = 1.0, cpu: float = 1.0) -> Score:
    return Score(accuracy, nll, 0.1, cpu)


def problem(about: About = HERE, **scores: Score) -> Problem:
    others = {name.replace("_", "-"): each for name, each in scores.items()}
    return Problem("made", about, score(0.9), {"uniform": score(0.5, cpu=0.0), **others})


def evidence(*problems: Problem) -> Evidence:
    return Evidence({name: Settings(name, {}, {}) for each in problems for name in each.scores}, list(problems))


def first(*problems: Problem, goal: str = "accuracy", about: About = HERE) -> Expectation:
    return ranking(about, evidence(*problems), goal)[0]


def test_ten_times_as_many_is_a_distance_of_one_and_another_kind_is_out_of_reach() -> None:
    assert distance(HERE, HERE) == 0
    assert distance(HERE, About("image", 100, 10, 10)) == pytest.approx(2)
    assert distance(HERE, About("text", 1000, 10, 1)) == inf


def test_the_expected_gain_is_a_mean_weighted_by_likeness() -> None:
    near, far = problem(dm=score(0.7)), problem(About("image", 100, 10, 1), dm=score(0.6))
    found = first(near, far)
    mean = (20 + 10 * exp(-1)) / (1 + exp(-1))
    assert found.name == "dm"
    assert found.gain.mean == pytest.approx(mean)
    assert found.full.mean == pytest.approx(mean - 40)
    assert found.gain.spread == pytest.approx((((20 - mean) ** 2 + exp(-1) * (10 - mean) ** 2) / (1 + exp(-1))) ** 0.5)


def test_results_of_the_same_kind_decide_and_not_the_number_of_others() -> None:
    text = About("text", 1000, 10, 1)
    images = [problem(dm=score(0.6), vbpc=score(0.5))] * 3
    texts = [problem(text, dm=score(0.5), vbpc=score(0.6))]
    assert first(*images, *texts).name == "dm"
    assert first(*images, *texts, about=text).name == "vbpc"


def test_calibration_takes_the_lowest_negative_log_likelihood() -> None:
    known = problem(dm=score(0.7, nll=0.9), vbpc=score(0.6, nll=0.4))
    assert first(known).name == "dm"
    found = first(known, goal="calibration")
    assert found.name == "vbpc"
    assert found.nll.mean == pytest.approx(0.6)


def test_privacy_takes_no_method_that_keeps_rows_of_the_data() -> None:
    known = problem(herding=score(0.9), label_solve=score(0.8), dm=score(0.6))
    assert [each.name for each in ranking(HERE, evidence(known), "privacy")] == ["dm"]


def test_speed_gives_away_a_little_accuracy_for_time_and_no_more() -> None:
    close, less = 0.7 - 0.9 * MARGIN / 100, 0.7 - 1.1 * MARGIN / 100
    known = problem(dm=score(0.7, cpu=60), herding=score(close, cpu=2), kip=score(less, cpu=0.1))
    assert [each.name for each in ranking(HERE, evidence(known), "speed")] == ["herding", "dm", "kip", "uniform"]


def test_far_from_all_results_the_choice_is_what_most_of_them_bear_out() -> None:
    known = [problem(dm=score(0.6), vbpc=score(best)) for best in (0.4, 0.4, 0.9, 0.9)]
    away = About("image", 10**6, 1000, 1)
    assert is_known(HERE, known)
    assert not is_known(away, known)
    assert not is_known(About("sound", 1000, 10, 1), known)
    assert first(*known).name == "vbpc"  # 15 points on average, but worse than random in half of the cases
    assert first(*known, about=away).name == "dm"


def test_the_nearest_problem_is_named() -> None:
    other = problem(About("image", 10**5, 10, 1), dm=score(0.7))
    mine = problem(dm=score(0.6))
    assert nearest(HERE, [other, mine]) is mine
    assert nearest(About("sound", 1000, 10, 1), [other, mine]) is None


def test_a_candidate_that_was_not_run_everywhere_on_this_kind_is_left_out() -> None:
    text = About("text", 1000, 10, 1)
    known = problem(dm=score(0.6)), problem(dm=score(0.6), vbpc=score(0.9)), problem(text, frepo=score(0.9))
    assert [each.name for each in ranking(HERE, evidence(*known), "accuracy")] == ["dm", "uniform"]
