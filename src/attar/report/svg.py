"""SVG building blocks of the charts: shapes, text, ticks and axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape as _escape
from importlib.resources import files
from math import ceil, floor, log10

from attar.core.text import visible

CHARACTER = 7.6  #: mean width of a character, in the widest of the usual fonts
MARKERS = ("circle", "square", "diamond", "triangle")


def escape(text: str) -> str:
    """Text as XML takes it; control characters, which XML has no form for, are written as escapes."""
    return _escape(visible(text))


def style() -> str:
    """The CSS of all charts, for light and dark mode."""
    return files("attar.report").joinpath("chart.css").read_text(encoding="utf-8")


def drawing(width: float, height: float, title: str, parts: Iterable[str], standalone: bool = False) -> str:
    """One ``<svg>``; a standalone one has its own style, background and margin."""
    margin = 14 if standalone else 0
    wide, high = number(width + 2 * margin), number(height + 2 * margin)
    paper = rect(-margin, -margin, width + 2 * margin, height + 2 * margin, "surface")
    own = f"<style>{style()}</style>{paper}" if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" width="{wide}" height="{high}" '
        f'viewBox="{-margin} {-margin} {wide} {high}"><title>{escape(title)}</title>{own}{"".join(parts)}</svg>'
    )


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start", turn: int = 0) -> str:
    rotate = f' transform="rotate({turn} {number(x)} {number(y)})"' if turn else ""
    place = f'x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}{rotate}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line class="{kind}" {ends}/>'


def path(points: Iterable[tuple[float, float]], kind: str) -> str:
    joined = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return f'<polyline class="{kind}" points="{joined}"/>'


def rect(x: float, y: float, width: float, height: float, kind: str, opacity: float = 1, title: str = "") -> str:
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    inside = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect class="{kind}" {place} fill-opacity="{number(opacity)}">{inside}</rect>'


def marker(x: float, y: float, shape: str, kind: str, title: str = "", r: float = 4.5) -> str:
    """A small mark; its shape distinguishes series without colour."""
    corners = {
        "square": [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
        "diamond": [(0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)],
        "triangle": [(0, -1.15), (1.1, 0.8), (-1.1, 0.8)],
    }
    inside = f"<title>{escape(title)}</title>" if title else ""
    if shape == "circle":
        return f'<circle class="{kind}" cx="{number(x)}" cy="{number(y)}" r="{number(r)}">{inside}</circle>'
    points = " ".join(f"{number(x + r * dx)},{number(y + r * dy)}" for dx, dy in corners[shape])
    return f'<polygon class="{kind}" points="{points}">{inside}</polygon>'


def shorten(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """About ``about`` round numbers, spaced by 1, 2 or 5 times a power of ten, that enclose the range."""
    if high <= low:
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    rough = (high - low) / about
    power = 10.0 ** floor(log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [i * step for i in range(first, last + 1)]


def decades(low: float, high: float) -> list[float]:
    """The powers of ten that enclose a positive range."""
    first = floor(log10(low))
    return [10.0**i for i in range(first, max(ceil(log10(high)), first + 1) + 1)]


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic map from values to pixels, with its ticks."""

    ticks: Sequence[float]
    start: float
    end: float
    low: float
    high: float
    log: bool = False

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float, about: int = 5, log: bool = False) -> Axis:
        """An axis whose ends are ticks and enclose all values."""
        known = list(values)
        marks = decades(min(known), max(known)) if log else ticks(min(known), max(known), about)
        return cls(marks, start, end, marks[0], marks[-1], log)

    @classmethod
    def within(cls, values: Iterable[float], start: float, end: float, about: int = 5) -> Axis:
        """An axis that ends at the extreme values, with the ticks in between."""
        known = list(values)
        marks = ticks(min(known), max(known), about)
        low, high = (min(known), max(known)) if max(known) > min(known) else (marks[0], marks[-1])
        return cls([tick for tick in marks if low <= tick <= high], start, end, low, high)

    def __call__(self, value: float) -> float:
        low, high = (log10(self.low), log10(self.high)) if self.log else (self.low, self.high)
        share = ((log10(value) if self.log else value) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def label(self, tick: float) -> str:
        if tick == 0 or 1e-3 <= abs(tick) < 1e5:
            return f"{tick:,.6g}"
        return f"{tick:.0e}".replace("e-0", "e-").replace("e+0", "e")


def frame(x: Axis, y: Axis, x_name: str, y_name: str = "") -> list[str]:
    """Horizontal grid lines, tick labels and the names of both axes."""
    left, right, bottom = x.start, x.end, y.start
    parts = []
    for tick in y.ticks:
        parts.append(line(left, y(tick), right, y(tick), "grid"))
        parts.append(text(left - 8, y(tick) + 4, y.label(tick), "tick", "end"))
    parts.append(line(left, bottom, right, bottom, "axis"))
    parts += [text(x(tick), bottom + 17, x.label(tick), "tick", "middle") for tick in x.ticks]
    parts.append(text((left + right) / 2, bottom + 35, x_name, "name", "middle"))
    if y_name:
        parts.append(text(2, y.end - 12, y_name, "name"))
    return parts
