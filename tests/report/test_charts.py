from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from attar.assess.metrics import Bin
from attar.report import accuracy_chart
from attar.report.charts import (
    Dot,
    Series,
    apart,
    curves,
    dots_with_errors,
    heatmap,
    lines_with_errors,
    reliability,
    thin,
)
from attar.report.estimate import Estimate
from tests.report.studies import study

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert('1')</script>&\""


def parts(svg: str, tag: str, kind: str = "") -> list[ElementTree.Element]:
    return [e for e in ElementTree.fromstring(svg).iter(SVG + tag) if kind in e.get("class", "").split() or not kind]


def words(svg: str) -> list[str]:
    return [e.text or "" for e in parts(svg, "text")]


def dots() -> list[Dot]:
    return [
        Dot("a", Estimate(50, 5), [45, 55], "c1"),
        Dot(EVIL, Estimate(70, None), [70], "c2"),
    ]


def test_a_dot_stands_on_its_mean_and_its_whisker_is_two_errors_long() -> None:
    svg = dots_with_errors([("", dots())], "accuracy", "title", reference=90)
    first, second = (float(mark.get("cx", "")) for mark in parts(svg, "circle", "mark"))
    per_unit = (second - first) / 20
    (whisker,) = [w for w in parts(svg, "line", "whisker") if w.get("y1") == w.get("y2")]
    assert float(whisker.get("x2", "")) - float(whisker.get("x1", "")) == pytest.approx(10 * per_unit, abs=0.05)
    (reference,) = parts(svg, "line", "reference")
    assert float(reference.get("x1", "")) == pytest.approx(first + 40 * per_unit, abs=0.05)


def test_values_are_written_with_an_error_only_where_one_is_known() -> None:
    drawn = words(dots_with_errors([("", dots())], "accuracy", "title", reference=None))
    assert "50.0\u00a0±\u00a05.0" in drawn
    assert "70.0" in drawn


def test_text_in_charts_is_escaped_and_every_chart_is_xml_with_a_title() -> None:
    bins = [Bin(0, 0.0, 0.0)] * 14 + [Bin(9, 0.97, 1.0)]
    series = [Series(EVIL, [(1, Estimate(40, 2)), (10, Estimate(60, None))], "c1")]
    drawn = [
        dots_with_errors([(EVIL, dots())], EVIL, EVIL, 90),
        lines_with_errors(series, EVIL, EVIL, EVIL, (EVIL, 90)),
        curves([[(0, 1.0), (1, 0.5)]], "c1", EVIL),
        reliability(bins, "c1", EVIL),
        heatmap([[3, 1], [0, 4]], [EVIL, "b"], EVIL),
    ]
    for svg in drawn:
        assert "<script" not in svg
        assert ElementTree.fromstring(svg).findtext(f"{SVG}title") == EVIL


def test_labels_at_line_ends_never_overlap() -> None:
    placed = apart([(100.0, f"{i}", "c1") for i in range(8)] + [(249.0, "low", "c2")], gap=15, lowest=250)
    places = [place for place, _, _ in placed]
    assert all(b - a >= 15 - 1e-9 for a, b in pairwise(places))
    assert max(places) <= 250


def test_labels_that_are_apart_stay_where_they_are() -> None:
    labels = [(10.0, "a", "c1"), (50.0, "b", "c2"), (90.0, "c", "c3")]
    assert apart(labels, gap=15, lowest=250) == labels


def test_a_longer_bar_is_a_higher_accuracy_and_empty_bins_have_none() -> None:
    bins = [Bin(4, 0.3, 0.25), Bin(0, 0.0, 0.0), Bin(4, 0.9, 0.75)]
    low, high = (float(bar.get("height", "")) for bar in parts(reliability(bins, "c1", "title"), "rect", "bar"))
    assert high == pytest.approx(3 * low, abs=0.05)


def test_heat_is_the_share_of_the_true_class_and_counts_are_written() -> None:
    svg = heatmap([[9, 1], [0, 50]], ["a", "b"], "title")
    shares = [float(cell.get("fill-opacity", "")) for cell in parts(svg, "rect", "heat")]
    assert shares == sorted(shares, key=lambda s: (s != shares[0], s))
    assert shares[2] == 1
    assert shares[1] < shares[0] < shares[2]
    assert {"9", "1", "50"} <= set(words(svg))


def test_a_heat_map_of_many_classes_has_no_numbers_and_few_labels() -> None:
    n = 100
    svg = heatmap([[int(i == j) for j in range(n)] for i in range(n)], [str(i) for i in range(n)], "title")
    assert len(parts(svg, "rect", "heat")) == n
    assert not parts(svg, "text", "count")
    assert len(parts(svg, "text", "tick")) <= 50


def test_losses_over_two_decades_get_a_logarithmic_axis_and_negative_ones_a_straight_one() -> None:
    assert "loss (logarithmic)" in words(curves([[(0, 100.0), (9, 0.1)]], "c1", "title"))
    assert "loss" in words(curves([[(0, 100.0), (9, -0.1)]], "c1", "title"))
    assert "loss" in words(curves([[(0, 2.0)]], "c1", "title"))


def test_thinned_curves_keep_both_ends() -> None:
    run = [(i, float(i)) for i in range(10_001)]
    short = thin(run)
    assert (short[0], short[-1]) == (run[0], run[-1])
    assert 200 < len(short) <= 302
    assert thin(run[:50]) == run[:50]


def test_the_accuracy_chart_stands_alone_and_knows_both_themes(tmp_path: Path) -> None:
    svg = accuracy_chart(study(tmp_path, per_class=(2, 4)))
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")
    assert len(parts(svg, "circle", "mark")) == 3 * 2 + 1
    used = set(re.findall(r"var\((--[\w-]+)\)", svg)) - {"--c"}
    assert all(f"{name}:" in svg for name in used)
