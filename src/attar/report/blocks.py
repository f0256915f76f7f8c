"""The parts of a detailed evaluation: answers with text, figures, tables and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Figure(NamedTuple):
    """An SVG, what it shows and a remark."""

    svg: str
    name: str
    note: str


class Measure(NamedTuple):
    """One number and what it means."""

    name: str
    value: str
    meaning: str


class Table(NamedTuple):
    """Column heads and lines of cells; the first cell of a line names it."""

    name: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Block:
    """One answer: a heading, an explanation, and figures, a table or numbers."""

    name: str
    text: str
    figures: Sequence[Figure] = ()
    table: Table | None = None
    measures: Sequence[Measure] = ()
    warnings: Sequence[str] = ()


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}\u00a0%"


def points(gain: float) -> str:
    """A difference of two shares, in percentage points."""
    return f"{100 * gain:+.1f}".replace("-", "−") + " points"


def plural(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
