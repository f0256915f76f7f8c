"""Intervals and rank correlations against published and computed values."""

from math import isnan

import pytest
import torch

from attar.assess.statistics import Paired, half_width, known, over_seeds, spearman, t_interval, t_quantile
from attar.core.errors import AttarError


@pytest.mark.parametrize(
    ("freedom", "t"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (10, 2.228)],
)
def test_the_quantiles_are_those_of_the_tables(freedom: int, t: float) -> None:
    assert t_quantile(freedom) == pytest.approx(t, abs=5e-4)


def test_an_interval_covers_the_mean_as_often_as_it_says() -> None:
    draws = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0)).tolist()
    hits = sum(abs(mean) <= (half or 0) for mean, half in map(t_interval, draws))
    assert 0.94 < hits / 4000 < 0.96


@pytest.mark.parametrize(
    ("gaps", "order"),
    [
        ((1, 2, 3, 2, 2), "above"),
        ((-1, -2, -3, -2, -2), "below"),
        ((3, -2, 1, -1, 0), "not distinguishable"),
        ((0, 0, 0, 0, 0), "not distinguishable"),
        ((2, 2, 2, 2), "too few seeds"),
        ((2,), "too few seeds"),
    ],
)
def test_an_order_needs_five_seeds_and_an_interval_without_zero(gaps: tuple[float, ...], order: str) -> None:
    found = Paired.of({seed: 50 + gap for seed, gap in enumerate(gaps)}, dict.fromkeys(range(9), 50.0))
    assert found is not None
    assert found.order == order
    assert str(found).startswith(order)


def test_a_pairing_takes_away_what_seeds_share() -> None:
    luck = {0: 10.0, 1: 50.0, 2: 90.0, 3: 30.0, 4: 70.0}
    found = Paired.of({seed: value + 1 + 0.1 * seed for seed, value in luck.items()}, luck)
    assert str(found) == "above, by 1.2 ± 0.2 points"
    assert str(Paired.of({0: 3.0, 1: 2.0}, {0: 1.0, 1: 1.0})) == (
        "too few seeds (difference +1.5 ± 6.4 points over 2 seeds)"
    )
    assert Paired.of({0: 1.0}, {1: 1.0}) is None


def test_a_stored_standard_error_gives_the_same_interval_as_its_values() -> None:
    assert over_seeds([1.0, 2.0, 3.0, 4.0], ".2f") == f"2.50 ± {half_width((5 / 3 / 4) ** 0.5, 4):.2f}"
    assert over_seeds([1.0], ".2f") == "1.00"
    assert half_width(0.0, 1) is None


def test_a_single_value_has_no_interval() -> None:
    assert t_interval([0.5]) == (0.5, None)
    with pytest.raises(AttarError, match="two values"):
        t_quantile(0)


def test_rank_correlation_knows_order_and_ties() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 25, 90]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 2, 2, 3], [1, 3, 2, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert isnan(spearman([1, 1, 1], [1, 2, 3]))
    assert known([1.0, float("nan")]) == [1.0]
    with pytest.raises(AttarError, match="as many values"):
        spearman([1], [1])
