"""Text of files in pages, charts and tables for spreadsheets."""

import csv
import io
from xml.etree import ElementTree

import pytest

from attar.core.errors import LONGEST, AttarError, DamagedFile
from attar.core.text import csv_text, visible
from attar.report import svg


@pytest.mark.parametrize("text", ["Ankle boot", "naïve – 東京", "می\u200cخواهم", "a\nb\tc", "a\u00a0b"])
def test_words_of_any_language_are_unchanged(text: str) -> None:
    assert visible(text) == text


def test_characters_that_control_or_reorder_are_written_as_escapes() -> None:
    assert visible("a\x1b[2J\u202eb\0\ud800\x85") == r"a\x1b[2J\u202eb\x00\ud800\x85"


@pytest.mark.parametrize("cell", ["=1+1", "+a", "-a", "@SUM(1)", "\t=1", "\r=1"])
def test_a_cell_that_would_run_as_a_formula_is_text(cell: str) -> None:
    ((found, other),) = csv.reader(io.StringIO(csv_text([[cell, "b"]])))
    assert found == "'" + visible(cell)
    assert other == "b"


def test_numbers_and_other_text_are_written_as_they_are() -> None:
    assert csv_text([["a", -1.5, "-1.5", "", None, 3], ["x,y", "a=b"]]) == 'a,-1.5,-1.5,,,3\n"x,y",a=b\n'


def test_charts_stay_xml_whatever_their_words_are() -> None:
    words = "\x00\x1b]0;x\x07<script>\ufffe\u202e&"
    parts = [svg.text(0, 0, words), svg.rect(0, 0, 1, 1, "a", title=words), svg.marker(0, 0, "circle", "a", words)]
    chart = ElementTree.fromstring(svg.drawing(10, 10, words, parts))
    assert "".join(chart.itertext()).count(r"\x00\x1b]0;x\x07<script>") == 4


def test_an_error_is_one_line_whatever_it_quotes() -> None:
    assert str(AttarError("a\n  b\u2028c: do d  e.")) == "a b c: do d  e."
    assert str(DamagedFile("f", "is\nbad", "copy it.")) == "f is bad: copy it."
    long = str(AttarError("start " + "x" * 10_000 + ": the remedy."))
    assert long.startswith("start ")
    assert long.endswith(": the remedy.")
    assert len(long) < LONGEST + 10
