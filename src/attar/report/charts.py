"""Charts as inline SVG, with CSS variables as colours for light and dark mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attar.assess.metrics import Bin
from attar.report.estimate import Estimate
from attar.report.svg import (
    CHARACTER,
    MARKERS,
    Axis,
    drawing,
    frame,
    line,
    marker,
    path,
    rect,
    shorten,
    text,
)

WIDTH = 440.0  #: narrow enough to be read on a phone
LABEL = 20  #: characters of a label before it is shortened
DIGIT = 7.0  #: width of a digit in a heat map


@dataclass(frozen=True)
class Dot:
    """One row of a dot chart: a mean, its interval and the single values behind it."""

    label: str
    value: Estimate
    values: Sequence[float]
    colour: str


@dataclass(frozen=True)
class Series:
    """One line: estimates ``y`` over ``x``."""

    label: str
    points: Sequence[tuple[float, Estimate]]
    colour: str
    shape: str = MARKERS[0]


def dots_with_errors(
    groups: Sequence[tuple[str, Sequence[Dot]]],
    name: str,
    title: str,
    reference: float | None,
    standalone: bool = False,
    spec: str = ".1f",
) -> str:
    """Means with their intervals, one row each, grouped under headings; small dots are single values."""
    dots = [dot for _, rows in groups for dot in rows]
    left = 12 + CHARACTER * max(len(shorten(dot.label, LABEL)) for dot in dots)
    reach = [v for d in dots for v in (*d.values, d.value.low, d.value.high)]
    x = Axis.over([*reach, *([] if reference is None else [reference])], left, WIDTH - 92, about=4)
    top, step, parts = 6.0, 27.0, []
    for heading, rows in groups:
        if heading:
            parts.append(text(0, top + step - 9, heading, "group"))
            top += step
        bottom = top + step * len(rows)
        parts += [line(x(tick), top, x(tick), bottom, "grid") for tick in x.ticks]
        if reference is not None:
            parts.append(line(x(reference), top, x(reference), bottom, "reference"))
        for i, dot in enumerate(rows):
            parts += _dot(dot, x, top + step * (i + 0.5), spec)
        top = bottom
    parts += [text(x(tick), top + 16, x.label(tick), "tick", "middle") for tick in x.ticks]
    parts.append(text((x.start + x.end) / 2, top + 34, name, "name", "middle"))
    return drawing(WIDTH, top + 42, title, parts, standalone)


def _dot(dot: Dot, x: Axis, y: float, spec: str) -> list[str]:
    parts = [text(0, y + 4, shorten(dot.label, LABEL)), text(WIDTH, y + 4, f"{dot.value:{spec}}", "", "end")]
    if dot.value.half is not None:
        low, high = x(dot.value.low), x(dot.value.high)
        parts.append(line(low, y, high, y, f"whisker {dot.colour}"))
        parts += [line(end, y - 6, end, y + 6, f"whisker {dot.colour}") for end in (low, high)]
    parts += [marker(x(value), y, "circle", f"seed {dot.colour}", r=3) for value in dot.values if len(dot.values) > 1]
    parts.append(marker(x(dot.value.mean), y, "circle", f"mark {dot.colour}", f"{dot.label}: {dot.value:{spec}}", r=4))
    return parts


def lines_with_errors(
    series: Sequence[Series],
    x_name: str,
    y_name: str,
    title: str,
    reference: tuple[str, float] | None,
    log: bool = True,
) -> str:
    """Lines over a few sizes, labelled at their ends, with a dashed line to compare with.

    Without ``log`` the axis is linear, and series stand side by side at each size, so that errors do not overlap.
    """
    names = [s.label for s in series] + ([reference[0]] if reference else [])
    right = WIDTH - 12 - CHARACTER * max(len(shorten(name, LABEL)) for name in names)
    sizes = sorted({point[0] for s in series for point in s.points})
    heights = [v for s in series for _, value in s.points for v in (value.low, value.high)]
    height = max(250.0, 15.0 * len(names) + 60)
    y = Axis.over([*heights, *([reference[1]] if reference else [])], height, 26)
    ends_at = (sizes[0] * 0.85, sizes[-1] * 1.1) if log else (sizes[0] - 0.4, sizes[-1] + 0.4)
    x = Axis(sizes, 44, right, *ends_at, log=log)
    beside = {s.label: 0.0 if log else 0.4 * (i / max(len(series) - 1, 1) - 0.5) for i, s in enumerate(series)}
    parts = frame(x, y, x_name, y_name)
    ends = []
    if reference:
        parts.append(line(x.start, y(reference[1]), x.end, y(reference[1]), "reference"))
        ends.append((y(reference[1]), reference[0], "c-full"))
    for s in series:
        placed = [(x(size + beside[s.label]), size, value) for size, value in s.points]
        parts.append(path([(at, y(value.mean)) for at, _, value in placed], f"curve {s.colour}"))
        for at, size, value in placed:
            parts.append(line(at, y(value.low), at, y(value.high), f"whisker {s.colour}"))
            parts.append(marker(at, y(value.mean), s.shape, f"mark {s.colour}", f"{s.label}, {size:g}: {value:.1f}"))
        ends.append((y(s.points[-1][1].mean), s.label, s.colour))
    for place, label, colour in apart(ends, gap=15, lowest=height):
        parts.append(text(right + 8, place + 4, shorten(label, LABEL), f"series {colour}"))
    return drawing(WIDTH, height + 42, title, parts)


def scatter_with_errors(
    series: Sequence[tuple[str, Sequence[tuple[Estimate, Estimate]], str, str]], x_name: str, y_name: str, title: str
) -> str:
    """Points with both intervals over a logarithmic axis; a series is its label, points, colour and shape."""
    right = WIDTH - 12 - CHARACTER * max(len(shorten(label, LABEL)) for label, *_ in series)
    points = [point for _, some, *_ in series for point in some]
    height = max(250.0, 15.0 * len(series) + 60)
    y = Axis.over([v for _, value in points for v in (value.low, value.high)], height, 26)
    x = Axis.over([v for spent, _ in points for v in (_positive(spent), spent.high)], 44, right, log=True)
    parts, ends = frame(x, y, x_name, y_name), []
    for label, some, colour, shape in series:
        parts.append(path([(x(a.mean), y(b.mean)) for a, b in some], f"curve thin {colour}"))
        for a, b in some:
            parts.append(line(x(a.mean), y(b.low), x(a.mean), y(b.high), f"whisker {colour}"))
            parts.append(line(x(_positive(a)), y(b.mean), x(a.high), y(b.mean), f"whisker {colour}"))
            parts.append(marker(x(a.mean), y(b.mean), shape, f"mark {colour}", f"{label}: {b:.1f} at {a:.3g}"))
        ends.append((y(some[-1][1].mean), label, colour))
    for place, label, colour in apart(ends, gap=15, lowest=height):
        parts.append(text(right + 8, place + 4, shorten(label, LABEL), f"series {colour}"))
    return drawing(WIDTH, height + 42, title, parts)


def _positive(value: Estimate) -> float:
    """The lower end of an interval, as far as a logarithmic axis can show it."""
    return max(value.low, value.mean / 3)


def apart(labels: Sequence[tuple[float, str, str]], gap: float, lowest: float) -> list[tuple[float, str, str]]:
    """Move labels up or down until none overlaps its neighbour."""
    rows = sorted(labels)
    places = [row[0] for row in rows]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    for i in reversed(range(len(places))):
        places[i] = min(places[i], lowest if i == len(places) - 1 else places[i + 1] - gap)
    return [(place, *row[1:]) for place, row in zip(places, rows, strict=True)]


def curves(runs: Sequence[Sequence[tuple[int, float]]], colour: str, title: str, width: float = 300.0) -> str:
    """Loss against step, one line per run; logarithmic if positive losses span two decades."""
    losses = [loss for run in runs for _, loss in run]
    log = min(losses) > 0 and max(losses) > 100 * min(losses)
    y = Axis.over(losses, 160, 26, about=4, log=log)
    x = Axis.within([step for run in runs for step, _ in run], 52, width - 16, about=4)
    parts = frame(x, y, "step", "loss (logarithmic)" if log else "loss")
    parts += [path([(x(a), y(b)) for a, b in thin(run)], f"curve thin {colour}") for run in runs]
    return drawing(width, 202, title, parts)


def thin(run: Sequence[tuple[float, float]], most: int = 300) -> Sequence[tuple[float, float]]:
    """At most about ``most`` points of a curve, evenly spaced, including the last."""
    stride = -(-len(run) // most)
    return run if stride <= 1 else [*run[:-1:stride], run[-1]]


def reliability(bins: Sequence[Bin], colour: str, title: str, side: float = 210.0) -> str:
    """Accuracy against confidence; bars on the dashed diagonal are calibrated, stronger bars hold more examples."""
    unit = [0, 0.5, 1.0]
    x, y = Axis(unit, 36, side - 12, 0, 1), Axis(unit, side - 50, 26, 0, 1)
    most, width = max(b.size for b in bins), 1 / len(bins)
    parts = frame(x, y, "confidence", "accuracy")
    for i, b in enumerate(bins):
        if b.size:
            says = f"confidence {b.confidence:.2f}, accuracy {b.accuracy:.2f}, {b.size:,} examples"
            place = x(i * width) + 0.75, y(b.accuracy), x(width) - x(0) - 1.5, y(0) - y(b.accuracy)
            parts.append(rect(*place, f"bar {colour}", 0.25 + 0.75 * (b.size / most) ** 0.5, says))
    parts += [line(x(0), y(0), x(1), y(1), kind) for kind in ("halo", "reference")]
    return drawing(side, side - 8, title, parts)


def heatmap(
    counts: Sequence[Sequence[int]], classes: Sequence[str], title: str, predicted: Sequence[str] | None = None
) -> str:
    """A confusion matrix: colour is the share of the true class (its row), numbers are counts.

    Columns are the same classes as rows, or what ``predicted`` names.
    """
    columns = classes if predicted is None else predicted
    n, across, names, heads = (
        len(counts),
        len(columns),
        *([shorten(x, 12) for x in some] for some in (classes, columns)),
    )
    every = -(-across // 25)
    left = 26 + CHARACTER * max(map(len, names))
    cell = min((WIDTH - left - 2) / across, 60)
    room = cell >= DIGIT * len(str(max(map(max, counts)))) + 2
    parts = [rect(left, 4, cell * across, cell * n, "cell")]
    for i, row in enumerate(counts):
        for j, count in enumerate(row):
            if count:
                share = count / sum(row)
                says = f"{classes[i]} predicted as {columns[j]}: {count:,}"
                parts.append(rect(left + j * cell, 4 + i * cell, cell, cell, "heat", 0.06 + 0.94 * share, says))
                if room:
                    parts.append(text(left + (j + 0.5) * cell, 8 + (i + 0.5) * cell, str(count), "count", "middle"))
    bottom, widest = 4 + cell * n, CHARACTER * max(map(len, heads))
    upright = widest < cell * every
    parts += [text(left - 7, 8 + (i + 0.5) * cell, names[i], "tick", "end") for i in range(0, n, every)]
    for i in range(0, across, every):
        middle = (i + 0.5) * cell
        if upright:
            parts.append(text(left + middle, bottom + 16, heads[i], "tick", "middle"))
        else:
            parts.append(text(left + middle + 4, bottom + 8, heads[i], "tick", "end", turn=-90))
    below = bottom + (20 if upright else 14 + widest)
    parts.append(text(left + cell * across / 2, below + 14, "predicted class", "name", "middle"))
    parts.append(text(11, 4 + cell * n / 2, "true class", "name", "middle", turn=-90))
    return drawing(left + cell * across + 2, below + 22, title, parts)
