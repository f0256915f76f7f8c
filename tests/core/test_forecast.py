"""Rehearsals are extrapolated by the order of growth; the clock of these tests stands still."""

from collections.abc import Callable

import pytest
import torch

from attar.core import forecast
from attar.core.forecast import ENOUGH, LONG, Order, Point, extrapolated, lap, spread

CPU = torch.device("cpu")


def rehearsing(time: Callable[[float], float], order: Order, rows: int = 100_000) -> Callable[[float], Point]:
    """Rehearsals of work that takes ``time(rows)`` seconds."""

    def rehearse(share: float) -> Point:
        some = round(share * rows)
        return Point(order.work(some), time(some), time(some))

    return rehearse


@pytest.mark.parametrize(
    ("order", "time"),
    [
        (Order(), lambda n: 0.2 + 3e-4 * n),
        (Order(rows=2), lambda n: 0.1 + 5e-8 * n**2),
        (Order(until=2000), lambda n: 0.1 + 1e-5 * min(n, 2000)),
        (Order(rows=0), lambda n: 0.7),
    ],
)
def test_work_that_grows_as_it_should_is_forecast_exactly(order: Order, time: Callable[[float], float]) -> None:
    found = extrapolated(rehearsing(time, order), 0.01, order.work(100_000))
    assert found == pytest.approx(time(100_000))


def test_shares_are_doubled_until_a_rehearsal_takes_long_enough_and_never_beyond_all() -> None:
    asked: list[float] = []

    def rehearse(share: float) -> Point:
        asked.append(share)
        return Point(share, share * 2 * ENOUGH, share * 2 * ENOUGH)

    assert extrapolated(rehearse, 0.1, 1.0) == pytest.approx(2 * ENOUGH)
    assert asked[:4] == [0.1, 0.2, 0.4, 0.8]
    assert set(asked[4:]) == {0.1, 0.8}  # repeated, for the shortest times
    asked.clear()
    extrapolated(lambda share: rehearse(share)._replace(spent=0.0), 0.3, 1.0)
    assert max(asked) == 1.0


def test_after_a_first_rehearsal_that_takes_long_half_of_it_shows_what_does_not_grow() -> None:
    asked: list[float] = []

    def rehearse(share: float) -> Point:
        asked.append(share)
        return Point(share, LONG + share, LONG + share)

    assert extrapolated(rehearse, 0.25, 1.0) == pytest.approx(LONG + 1)
    assert asked == [0.25, 0.125]


def test_a_long_rehearsal_whose_half_is_the_same_work_is_extrapolated_in_proportion() -> None:
    assert extrapolated(lambda share: Point(0.25, LONG, LONG), 0.25, 1.0) == pytest.approx(4 * LONG)


def test_work_of_little_time_is_rehearsed_longer_if_that_is_asked_for() -> None:
    most = [0.0]

    def rehearse(share: float) -> Point:
        most[0] = max(most[0], share)
        return Point(share**2, share**2, 1.0)

    extrapolated(rehearse, 0.01, 1.0)
    assert most == [0.04]
    extrapolated(rehearse, 0.01, 1.0, least=0.1)
    assert most == [0.32]


def test_the_shortest_of_repeated_rehearsals_counts() -> None:
    noise = iter([9.0, 5.0, 7.0, 3.0, 0.0, 0.0, 0.0, 0.0])
    found = extrapolated(lambda share: Point(share, share + next(noise), 1.0), 0.125, 1.0)
    assert found == pytest.approx(1.0)


def test_time_that_falls_with_the_work_is_not_extrapolated() -> None:
    assert extrapolated(lambda share: Point(share, 1 - share, 1.0), 0.125, 1.0) == pytest.approx(0.5)


def test_a_lap_is_the_lesser_of_wall_clock_and_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for end, waits, least in (((3.0, 1.0), False, 1.0), ((2.0, 8.0), False, 2.0), ((3.0, 1.0), True, 3.0)):
        left = iter([(0.0, 0.0), end])
        monkeypatch.setattr(forecast, "now", lambda left=left: next(left))
        with lap(CPU, waits) as timed:
            pass
        assert timed.seconds == least


def test_places_are_spread_over_all_of_them() -> None:
    index = torch.arange(10, 110)
    assert spread(index, 4).tolist() == [10, 43, 76, 109]
    assert spread(index, 500).tolist() == index.tolist()
    assert spread(index[:0], 3).tolist() == []
    assert len(spread(torch.arange(2_000_003), 1_999_999).unique()) == 1_999_999
