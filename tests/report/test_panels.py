from __future__ import annotations

from xml.etree import ElementTree

import pytest

from attar.report.panels import CELLS, Heat, extremes, heaps, matrix, running, tally, traces, tracks, trade_off

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert('1')</script>&\""


def parts(svg: str, tag: str, kind: str = "") -> list[ElementTree.Element]:
    return [e for e in ElementTree.fromstring(svg).iter(SVG + tag) if kind in e.get("class", "").split() or not kind]


def at(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name, "nan"))


def test_heat_runs_from_the_lowest_number_to_the_highest() -> None:
    svg = matrix([Heat("a", [20.0, 60.0]), Heat("b", [40.0, None])], ["1", "2"], [], "severity", "title")
    low, high, middle = (at(cell, "fill-opacity") for cell in parts(svg, "rect", "heat"))
    assert high == 1
    assert low < middle < high
    assert middle == pytest.approx((low + high) / 2, abs=0.01)
    assert [cell.text for cell in parts(svg, "text", "count")] == ["20", "60", "40", "–"]


def test_heat_of_equal_numbers_is_drawn_too() -> None:
    assert len(parts(matrix([Heat("a", [50.0, 50.0])], ["1", "2"], [], "", "title"), "rect", "heat")) == 2


def test_columns_stand_under_their_heads_and_wide_heads_are_turned() -> None:
    for columns in (["1", "2"], ["a long name of a network", "another"] * 4):
        svg = matrix([Heat("a", [1.0] * len(columns), ["0.5"])], columns, ["NLL"], "", "title")
        heads = [head for head in parts(svg, "text", "tick") if head.text != "NLL"]
        cells = parts(svg, "rect", "heat")
        middles = [at(cell, "x") + at(cell, "width") / 2 for cell in cells]
        assert [at(head, "x") for head in heads] == pytest.approx(middles, abs=4.1)
        assert all(bool(head.get("transform")) == (len(columns) > 2) for head in heads)


def test_a_single_column_leaves_room_for_its_name() -> None:
    svg = matrix([Heat("a", [1.0]), Heat("b", [2.0])], ["mlp"], [], "trained network", "title")
    (name,) = parts(svg, "text", "name")
    assert at(name, "x") + 7 * len("trained network") <= at(ElementTree.fromstring(svg), "width")


def test_a_trade_off_falls_to_the_dashed_line() -> None:
    svg = trade_off([(10, 100), (50, 95), (100, 80)], "c1", "title", 80)
    (curve,) = parts(svg, "polyline", "curve")
    last = [float(v) for v in (curve.get("points") or "").split()[-1].split(",")]
    (dashed,) = parts(svg, "line", "reference")
    assert last == pytest.approx([at(dashed, "x2"), at(dashed, "y2")])


def test_every_value_is_one_dot_and_like_values_are_heaped() -> None:
    svg = heaps([0.5, 0.5, 0.5, 2.0], "c1", "title", "distance", ("here", 1.0))
    dots = parts(svg, "circle", "mark")
    assert len(dots) == 4
    assert len({(dot.get("cx"), dot.get("cy")) for dot in dots}) == 4
    assert len({dot.get("cx") for dot in dots}) == 2
    (reference,) = parts(svg, "line", "reference")
    assert at(dots[0], "cx") < at(reference, "x1") < at(dots[3], "cx")


def test_a_high_heap_stays_in_its_picture() -> None:
    svg = heaps([1.0] * 5000, "c1", "title", "distance", ("here", 1.0))
    assert min(at(dot, "cy") for dot in parts(svg, "circle", "mark")) > 14
    assert at(ElementTree.fromstring(svg), "height") < 250


def test_every_chain_is_one_line_of_its_own_colour() -> None:
    svg = traces([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]], "U", "title")
    lines = parts(svg, "polyline", "curve")
    assert len({line.get("class") for line in lines}) == 2
    assert all(len((line.get("points") or "").split()) == 3 for line in lines)
    assert len(parts(traces([[5.0]], "U", "title"), "polyline")) == 1


def test_text_in_panels_is_escaped_and_every_panel_is_xml_with_a_title() -> None:
    drawn = [
        matrix([Heat(EVIL, [1.0], [EVIL])], [EVIL], [EVIL], EVIL, EVIL),
        trade_off([(10, 100), (100, 80)], "c1", EVIL, 80),
        heaps([1.0], "c1", EVIL, EVIL, (EVIL, 1.0)),
        traces([[1.0, 2.0]], EVIL, EVIL),
    ]
    for svg in drawn:
        assert "<script" not in svg
        assert ElementTree.fromstring(svg).findtext(f"{SVG}title") == EVIL


def test_a_running_mean_is_the_mean_of_neighbours_and_of_fewer_at_the_ends() -> None:
    points = [(step, float(step**2)) for step in range(1, 6)]
    steps, means = zip(*running(points, 3), strict=True)
    assert steps == (1, 2, 3, 4, 5)
    assert means == pytest.approx([2.5, 14 / 3, 29 / 3, 50 / 3, 20.5])


def test_a_running_mean_stays_within_its_values_whatever_is_lost_to_rounding() -> None:
    values = [1e29, *[1e-29] * 8]
    means = [mean for _, mean in running(list(enumerate(values)), 3)]
    assert min(values) <= min(means)
    assert max(means) <= max(values)


def test_a_noisy_line_with_fewer_points_reaches_as_far_and_goes_forward() -> None:
    points = [(step, float(step % 40)) for step in range(12_001)]
    few = extremes(points, 300)
    assert len(few) <= 300
    assert {value for _, value in few} >= {0.0, 39.0}
    assert list(few) == sorted(set(few) & set(points))
    assert extremes(points[:300], 300) == points[:300]


def test_several_tracks_have_a_legend_and_one_has_none() -> None:
    points = [(1.0, 2.0), (2.0, 3.0)]
    two = tracks([("one", points, "c1"), (EVIL, points, "c2")], "energy", "title")
    assert [label.text for label in parts(two, "text", "series")] == ["one", EVIL]
    assert len(parts(two, "polyline", "curve")) == 2
    assert not parts(tracks([("one", points, "c1")], "scale", "title"), "text", "series")


def test_tracks_are_logarithmic_only_where_positive_values_span_two_decades() -> None:
    for ends, log in (((1.0, 1000.0), True), ((1.0, 50.0), False), ((-1.0, 1000.0), False)):
        svg = tracks([("one", list(enumerate(ends)), "c1")], "energy", "title")
        assert ("energy (logarithmic)" in svg) == log


def test_a_tally_colours_by_count_and_leaves_out_what_never_came() -> None:
    svg = tally({(0, 0): 1, (2, 3): 4}, "trajectory", "epoch", "title")
    first, last = parts(svg, "rect", "heat")
    assert at(first, "fill-opacity") < at(last, "fill-opacity") == 1
    assert at(last, "x") - at(first, "x") == pytest.approx(3 * at(first, "width"), abs=0.1)
    assert at(last, "y") - at(first, "y") == pytest.approx(2 * at(first, "height"), abs=0.1)
    assert [count.text for count in parts(svg, "text", "count")] == ["1", "4"]


def test_neighbours_share_a_cell_of_a_tally_where_there_are_many_and_no_count_is_lost() -> None:
    counts = {(row, column): 1 for row in range(100) for column in range(51)}
    svg = tally(counts, "trajectory", "epoch", "title")
    cells = parts(svg, "rect", "heat")
    assert len({at(cell, "x") for cell in cells}) <= CELLS
    assert len({at(cell, "y") for cell in cells}) == CELLS
    said = [cell.findtext(SVG + "title") or "" for cell in cells]
    assert said[0] == "trajectory 0 to 3, epoch 0 to 2: 12"
    assert sum(int(words.rpartition(" ")[2]) for words in said) == len(counts)
    right = max(at(cell, "x") + at(cell, "width") for cell in cells)
    assert right <= at(ElementTree.fromstring(svg), "width")


def test_a_tally_of_absurd_numbers_is_small() -> None:
    assert len(tally({(10**29, 0): 1, (0, 10**29): 2}, "trajectory", "epoch", "title")) < 20_000
