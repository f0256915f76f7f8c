"""``recommend``: a plan that can be run, what it says, and what bad input says."""

import shlex

import pytest
import torch
from torch import Generator

import attar
from attar import AttarError, Data, Split
from attar.data import Spec
from attar.recommend import GOALS, run
from attar.recommend.choose import ranking, synthetic
from attar.recommend.evidence import About, Evidence, Problem, Score, Settings, evidence
from tests.known import gaussians


@pytest.fixture(scope="module")
def digits() -> Split:
    return attar.load("digits")


@pytest.mark.parametrize("goal", GOALS)
def test_it_is_the_first_of_the_ranking_with_the_settings_that_were_measured(digits: Split, goal: str) -> None:
    found = attar.recommend(digits, per_class=3, goal=goal)
    best = ranking(About("image", len(digits.train), 10, 3), evidence(), goal)[0]
    assert found.expected == best
    assert found.method == evidence().settings[best.name].method
    assert found.known
    assert not found.passed
    planned = attar.plan(digits, **found.arguments)
    assert planned.recipe() == found.plan.recipe()
    if goal == "privacy":
        assert synthetic(found.method)


def test_what_it_says_names_method_expectation_reason_and_command(digits: Split) -> None:
    found = attar.recommend(digits, per_class=2)
    lines = str(found).splitlines()
    assert lines[0].startswith(f"{found.method}: expect an accuracy ")
    assert "points above a random subset" in lines[0]
    assert "(image, 1,295 training examples, 10 classes)" in lines[1]
    assert any(line.startswith("uniform ") for line in lines)
    assert lines[-1] == f"Run: {found.command()}"


def test_its_repr_is_one_line(digits: Split) -> None:
    found = attar.recommend(digits, per_class=1)
    assert repr(found).startswith(f"Recommendation({found.method}, 1 per class: expect an accuracy ")
    assert len(repr(found)) < 250


def test_the_command_names_the_data_and_quotes_it(digits: Split) -> None:
    found = attar.recommend(digits, per_class=2)
    assert shlex.split(found.command()) == ["attar", "reduce", "digits", *found.flags]
    assert shlex.split(found.command("a b.csv", ["--target", "my label"]))[2:5] == ["a b.csv", "--target", "my label"]


def known(**accuracies: float) -> Evidence:
    """Made-up evidence on one table."""
    scores = {name: Score(accuracy, 1.0, 0.1, 1.0) for name, accuracy in accuracies.items()}
    problem = Problem("made", About("table", 90, 3, 2), Score(0.9, 0.5, 0.1, 1.0), scores)
    return Evidence({name: Settings(name, {}, {}) for name in scores}, [problem])


def test_with_too_little_time_for_anything_it_is_a_random_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "evidence", lambda: known(uniform=0.5, herding=0.6, dm=0.7))
    found = attar.recommend(gaussians(30), per_class=2, minutes=1e-9)
    assert found.method == "uniform"
    assert [each.partition(" (about ")[0] for each in found.passed] == ["dm", "herding"]


def test_a_random_subset_is_not_private_so_too_little_time_is_an_error(digits: Split) -> None:
    with pytest.raises(AttarError, match="No method for the goal privacy") as caught:
        attar.recommend(digits, per_class=1, minutes=1e-9, goal="privacy")
    assert str(caught.value).endswith("allow more, or change the goal.")


def test_a_method_that_the_network_does_not_allow_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "evidence", lambda: known(uniform=0.5, dm=0.6, vbpc=0.7))
    assert attar.recommend(gaussians(30), per_class=2).method == "vbpc"
    found = attar.recommend(gaussians(30), per_class=2, network="mlp-cosine")  # vbpc needs a linear last layer
    assert found.method == "dm"
    assert [each.partition(" (")[0] for each in found.passed] == ["vbpc"]
    assert found.why.startswith("It has, after those passed over, the highest expected accuracy")


def test_data_like_nothing_that_was_measured_is_said_to_be_so_and_gets_a_safe_choice() -> None:
    x = torch.randn(9000, 3, generator=Generator().manual_seed(0))
    data = Data(x, torch.arange(9000) % 300, spec=Spec.of((3,), 300))
    found = attar.recommend(data, per_class=1)
    assert not found.known
    assert found.why.startswith("No committed result is near this data (table, 9,000 training examples, 300 classes;")
    assert "safe choice" in found.why
    assert max(each.gain.low for each in found.candidates) == found.expected.gain.low > 0


def test_skewed_classes_are_noted_and_their_budget_is_in_the_command() -> None:
    data = gaussians(30)
    skewed = data[torch.cat([(data.hard == 0).nonzero().flatten(), (data.hard > 0).nonzero().flatten()[:9]])]
    assert any(line.startswith("Note: Classes have ") for line in attar.recommend(skewed, per_class=2).lines())
    shared = attar.recommend(skewed, per_class=2, budget="proportional")
    assert "--budget proportional" in shared.command()
    assert not any(line.startswith("Note:") for line in shared.lines())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"goal": "accurate"}, "Unknown goal 'accurate': did you mean 'accuracy'?"),
        ({"minutes": 0}, "minutes must be a number above 0, got 0: leave it out for no limit."),
        ({"minutes": float("nan")}, "minutes must be a number above 0, got nan: leave it out for no limit."),
        ({"per_class": 31}, "Class 'class 0' has 30 examples, but 31 per class were asked for: ask for fewer."),
        ({"per_class": 0}, "per_class must be at least 1, got 0."),
        ({"network": "nothing"}, "Unknown network 'nothing'"),
    ],
)
def test_bad_input_is_one_sentence(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(AttarError) as caught:
        attar.recommend(gaussians(30), **wrong)  # type: ignore[arg-type]
    assert str(caught.value).startswith(said)
