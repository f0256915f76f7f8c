"""Charts from the log of a condensation: energies, experts used, and learnt scalars."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from attar.core import budget
from attar.core.errors import AttarError
from attar.core.files import parsed, read_bytes
from attar.report import panels
from attar.report.blocks import Figure, plural
from attar.report.rows import Row

LEARNT = {"scale": "scale of logits", "step_size": "step size"}  #: scalars that are learnt with the examples
WINDOWS = 20  #: windows of the running mean per log
SMALLEST, LARGEST = 1e-30, 1e30  #: range of numbers that can be drawn

Line = dict[str, float]


def read_log(path: Path) -> list[Line]:
    """The lines of a log, one per step; numbers that cannot be drawn are dropped, and an invalid log is refused."""
    content = read_bytes(path, budget.PARSED)
    try:
        lines = [_line(parsed(text, finite=False)) for text in content.decode().splitlines()]
    except ValueError as error:
        raise AttarError(f"{path} is not a complete log ({error}): make it again.") from error
    steps = [line.get("step", 0) for line in lines]
    if not steps or steps[0] < 1 or any(a >= b for a, b in pairwise(steps)):
        raise AttarError(f"{path} is not a complete log (its steps do not go up): make it again.")
    return lines


def figures(lines: list[Line], row: Row) -> list[Figure]:
    """One chart per quantity in the log."""
    learnt = [_learnt(lines, key, name, row) for key, name in LEARNT.items() if _track(lines, key)]
    return [*_energies(lines, row), *_experts(lines, row), *learnt]


def _line(found: Any) -> Line:
    if not isinstance(found, dict) or any(type(value) not in (int, float) for value in found.values()):
        raise ValueError("a line holds values that are not numbers")
    return {key: v for key, v in found.items() if v == 0 or SMALLEST < abs(v) < LARGEST}


def _track(lines: list[Line], key: str) -> panels.Points:
    return [(line["step"], line[key]) for line in lines if key in line]


def _energies(lines: list[Line], row: Row) -> list[Figure]:
    """Energies of the positive and negative phase; the positive one has the colour of the full data."""
    tracks = [(key, _track(lines, key), colour) for key, colour in (("positive", "c-full"), ("negative", row.colour))]
    if not all(points for _, points, _ in tracks):
        return []
    window = len(lines) // WINDOWS | 1  # odd, so that the window is symmetric
    svg = panels.tracks(tracks, "energy", f"Energies of {row.label} against step", window)
    means = f"; means over {window} steps" if window > 1 else ""
    note = f"positive phase: parameters from the full data; negative phase: from the examples{means}"
    return [Figure(svg, "Energy of the examples", note)]


def _experts(lines: list[Line], row: Row) -> list[Figure]:
    drawn = [(line["trajectory"], line["epoch"]) for line in lines if "trajectory" in line and "epoch" in line]
    whole = [(int(a), int(b)) for a, b in drawn if a >= 0 and b >= 0 and a % 1 == 0]  # fractions lie in their epoch
    if not whole:
        return []
    title = f"Trajectories and epochs of the experts that {row.label} used"
    svg = panels.tally(Counter(whole), "trajectory", "epoch", title)
    return [Figure(svg, "Experts used", f"{plural(len(whole), 'step')}, by the first expert of each step")]


def _learnt(lines: list[Line], key: str, name: str, row: Row) -> Figure:
    points = _track(lines, key)
    svg = panels.tracks([(name, points, row.colour)], name, f"The {name} of {row.label} against step", height=90)
    return Figure(svg, f"Learnt {name}", f"from {points[0][1]:.3g} to {points[-1][1]:.3g}")
