import pytest
import torch

from attar.core.errors import AttarError
from attar.select.budget import divide, share, skew, total


def test_a_budget_is_a_size_or_a_fraction() -> None:
    assert total(200, size=7) == 7
    assert total(200, fraction=0.1) == 20
    assert total(200, fraction=0.001) == 1
    assert total(200, fraction=1) == 200


@pytest.mark.parametrize("size", [0, -3, 201])
def test_a_size_beyond_the_data_is_refused(size: int) -> None:
    with pytest.raises(AttarError, match=f"200 examples, but {size} were asked for: ask for 1 to 200"):
        total(200, size=size)


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.1, float("nan"), float("inf")])
def test_a_fraction_beyond_one_is_refused(fraction: float) -> None:
    with pytest.raises(AttarError, match="fraction must lie between 0 and 1"):
        total(200, fraction=fraction)


@pytest.mark.parametrize("budget", [{}, {"size": 1, "fraction": 0.5}])
def test_a_budget_is_given_once(budget: dict[str, float]) -> None:
    with pytest.raises(AttarError, match="Give the budget as one of"):
        total(200, **budget)  # type: ignore[arg-type]


COUNTS = torch.tensor([100, 3, 10, 50])


def test_balanced_shares_are_equal_as_far_as_classes_reach() -> None:
    assert share(COUNTS, 8) == [2, 2, 2, 2]
    assert share(COUNTS, 9) == [3, 2, 2, 2]
    assert share(COUNTS, 43) == [15, 3, 10, 15]
    assert share(COUNTS, 163) == COUNTS.tolist()


def test_proportional_shares_follow_the_counts_and_forget_no_class() -> None:
    assert share(COUNTS, 16, balanced=False) == [9, 1, 1, 5]
    assert share(COUNTS, 4, balanced=False) == [1, 1, 1, 1]
    assert share(COUNTS, 163, balanced=False) == COUNTS.tolist()


@pytest.mark.parametrize("balanced", [True, False])
def test_shares_add_up_and_grow_with_the_budget(balanced: bool) -> None:
    for size in range(4, 164):
        given = share(COUNTS, size, balanced=balanced)
        assert sum(given) == size
        assert all(1 <= k <= n for k, n in zip(given, COUNTS.tolist(), strict=True))


@pytest.mark.parametrize("size", [3, 164])
def test_below_one_per_class_or_above_all_is_refused(size: int) -> None:
    with pytest.raises(AttarError, match="ask for 4 to 163"):
        share(COUNTS, size)


def test_an_empty_class_is_named() -> None:
    with pytest.raises(AttarError, match="Class 1 has no examples"):
        share(torch.tensor([3, 0]), 2)


def test_only_balanced_budgets_of_skewed_classes_lose_frequencies() -> None:
    assert not skew(torch.tensor([10, 19, 12]), "balanced")
    assert not skew(torch.tensor([10, 1020, 12]), "minimum")
    assert "Classes have 10 to 1,020 examples" in skew(torch.tensor([10, 1020, 12]), "balanced")


def test_a_minimum_is_kept_and_the_rest_follows_the_counts() -> None:
    assert divide(COUNTS, 16, "balanced") == [5, 3, 4, 4]
    assert divide(COUNTS, 16, "proportional") == share(COUNTS, 16, balanced=False)
    assert divide(COUNTS, 16, "minimum") == [8, 2, 2, 4]
    assert divide(COUNTS, 40, "minimum=5") == [22, 3, 5, 10]  # the second class has no more
    for size in (8, 16, 40, 100):
        for budget in ("balanced", "proportional", "minimum", "minimum=2"):
            assert sum(divide(COUNTS, size, budget)) == size


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("propotional", "Unknown budget 'propotional': did you mean 'proportional'"),
        ("balanced=3", "Unknown budget 'balanced=3'"),
        ("minimum=0", "A minimum is a whole number of examples per class"),
        ("minimum=many", "A minimum is a whole number of examples per class"),
        ("minimum=9", "At least 9 of each of 4 classes are 30 examples, but 20 were asked for"),
    ],
)
def test_a_budget_that_does_not_fit_is_refused(budget: str, words: str) -> None:
    with pytest.raises(AttarError, match=words):
        divide(COUNTS, 20, budget)
