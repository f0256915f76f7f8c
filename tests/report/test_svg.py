from __future__ import annotations

from itertools import pairwise
from math import isclose, log10

import pytest

from attar.report.svg import Axis, decades, marker, ticks


@pytest.mark.parametrize(("low", "high"), [(0, 1), (41.3, 97.2), (-3.2, 8), (1e-7, 3e-7), (0, 123456), (99.9, 100)])
def test_ticks_enclose_the_range_in_even_round_steps(low: float, high: float) -> None:
    marks = ticks(low, high)
    steps = [b - a for a, b in pairwise(marks)]
    assert marks[0] <= low + 1e-9 * abs(low)
    assert marks[-1] >= high - 1e-9 * abs(high)
    assert all(isclose(step, steps[0], rel_tol=1e-6) for step in steps)
    leading = steps[0] / 10 ** round(log10(steps[0]) - 0.349)  # 0.349: halfway between 2 and 2.5 on a log scale
    assert any(isclose(leading, m, rel_tol=1e-6) for m in (0.5, 1, 2, 5, 10))
    assert 2 <= len(marks) <= 8


def test_a_range_without_width_still_has_an_axis() -> None:
    for value in (0.0, 5.0, -2.0):
        axis = Axis.over([value], 0, 100)
        assert 0 <= axis(value) <= 100
        assert len(axis.ticks) > 1


def test_decades_enclose_a_positive_range() -> None:
    assert decades(0.02, 30) == pytest.approx([0.01, 0.1, 1, 10, 100])
    assert decades(1, 1) == pytest.approx([1, 10])


def test_an_axis_maps_its_ends_to_its_ends_and_logarithms_evenly() -> None:
    straight = Axis.over([0, 10], 100, 200)
    assert (straight(0), straight(5), straight(10)) == (100, 150, 200)
    log = Axis.over([1, 100], 0, 100, log=True)
    assert log(10) == pytest.approx(50)


def test_an_axis_within_ends_where_the_values_do() -> None:
    axis = Axis.within([0, 495], 0, 100)
    assert axis(495) == 100
    assert max(axis.ticks) <= 495


def test_markers_of_different_series_differ_in_shape() -> None:
    drawn = {marker(0, 0, shape, "mark").replace("mark", "") for shape in ("circle", "square", "diamond", "triangle")}
    assert len(drawn) == 4
