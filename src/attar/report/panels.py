"""Charts of detailed evaluations: heat maps, trade-offs, dot plots, traces of chains, tracks and tallies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from attar.report.charts import WIDTH, thin
from attar.report.rows import COLOURS
from attar.report.svg import CHARACTER, Axis, drawing, frame, line, marker, path, rect, shorten, text

LABEL, HEAD = 19, 12  #: characters of a row label, and of a column label, before it is shortened
STEP = 23.0  #: height of a row of heat
BESIDE = 48.0  #: width of a column of plain numbers
CELLS = 25  #: most cells of a tally along either side

Points = Sequence[tuple[float, float]]


class Heat(NamedTuple):
    """One row of a heat map: coloured cells, and plain text beside them."""

    label: str
    cells: Sequence[float | None]
    beside: Sequence[str] = ()
    strong: bool = False  #: a summary of the rows before it, drawn separately


def matrix(rows: Sequence[Heat], columns: Sequence[str], beside: Sequence[str], name: str, title: str) -> str:
    """Percentages in coloured cells: the lowest is palest, the highest strongest."""
    left = 12 + CHARACTER * max(len(shorten(row.label, LABEL)) for row in rows)
    cell = min((WIDTH - left - BESIDE * len(beside)) / len(columns), 72.0)
    right = left + cell * len(columns)
    ends = [right + BESIDE * (i + 1) for i in range(len(beside))]
    heads, top = _heads(columns, left, cell, 20.0 if name else 2.0)
    parts = [*heads, text(left + 1, 12, name, "name")]
    parts += [text(x, top - 7, head, "tick", "end") for x, head in zip(ends, beside, strict=True)]
    known = [value for row in rows for value in row.cells if value is not None]
    low, span = min(known), (max(known) - min(known)) or 1.0
    for row in rows:
        top += 8 if row.strong else 0
        kind, middle = "group" if row.strong else "", top + STEP / 2 + 4.5
        parts.append(text(0, middle, shorten(row.label, LABEL), kind))
        for i, (value, column) in enumerate(zip(row.cells, columns, strict=True)):
            x = left + i * cell
            if value is not None:
                says = f"{row.label}, {name} {column}: {value:.1f} %"
                parts.append(rect(x + 1, top + 1, cell - 2, STEP - 2, "heat", 0.08 + 0.92 * (value - low) / span, says))
            words = "–" if value is None else f"{value:.0f}"
            parts.append(text(x + cell / 2, middle, words, f"count {kind}".strip(), "middle"))
        parts += [text(x, middle, words, kind, "end") for x, words in zip(ends, row.beside, strict=True)]
        top += STEP
    width = max(right + BESIDE * len(beside), left + CHARACTER * len(name))
    return drawing(width, top + 2, title, parts)


def _heads(columns: Sequence[str], left: float, cell: float, top: float) -> tuple[list[str], float]:
    """Names above their columns, rotated if they are too wide, and the top of the rows."""
    names = [shorten(column, HEAD) for column in columns]
    widest = CHARACTER * max(map(len, names))
    middles = [left + (i + 0.5) * cell for i in range(len(names))]
    if widest < cell:
        return [text(x, top + 13, head, "tick", "middle") for x, head in zip(middles, names, strict=True)], top + 20
    low = top + widest + 6
    return [text(x + 4, low, head, "tick", turn=-90) for x, head in zip(middles, names, strict=True)], low + 7


def trade_off(points: Sequence[tuple[float, float]], colour: str, title: str, reference: float) -> str:
    """Accuracy against coverage, both in percent; the dashed line is the accuracy at full coverage."""
    y = Axis.over([*(accuracy for _, accuracy in points), reference], 190, 26, about=4)
    x = Axis([0, 25, 50, 75, 100], 44, WIDTH - 12, 0, 100)
    parts = frame(x, y, "coverage, most confident first, %", "accuracy, %")
    parts.append(line(x.start, y(reference), x.end, y(reference), "reference"))
    parts.append(path([(x(share), y(accuracy)) for share, accuracy in points], f"curve {colour}"))
    return drawing(WIDTH, 232, title, parts)


def heaps(values: Sequence[float], colour: str, title: str, name: str, reference: tuple[str, float]) -> str:
    """One dot per value, stacked where many are similar, with a dashed reference line."""
    label, at = reference
    x = Axis.over([0, *values, at], 12, WIDTH - 12)
    heap: dict[int, int] = {}
    places = []
    for value in sorted(values):
        column = round(x(value) / 7)
        heap[column] = heap.get(column, 0) + 1
        places.append((column * 7.0, heap[column], value))
    step = min(7.0, 110 / max(heap.values()))
    bottom = 30 + max(step * max(heap.values()), 40)
    parts = [line(x.start, bottom, x.end, bottom, "axis"), line(x(at), 22, x(at), bottom, "reference")]
    side = "end" if x(at) > WIDTH / 2 else "start"
    parts.append(text(x(at), 14, label, "tick", side))
    for place, height, value in places:
        parts.append(marker(place, bottom - step * (height - 0.5), "circle", f"mark {colour}", f"{value:.2f}", r=3))
    parts += [text(x(tick), bottom + 17, x.label(tick), "tick", "middle") for tick in x.ticks]
    parts.append(text((x.start + x.end) / 2, bottom + 35, name, "name", "middle"))
    return drawing(WIDTH, bottom + 42, title, parts)


def traces(chains: Sequence[Sequence[float]], name: str, title: str, unit: bool = False, width: float = 320.0) -> str:
    """A quantity along every chain, one line per chain; ``unit`` if it is a probability."""
    values = [value for chain in chains for value in chain]
    y = Axis([0, 0.5, 1], 170, 26, 0, 1) if unit else Axis.over(values, 170, 26, about=4)
    x = Axis.within(range(1, max(map(len, chains)) + 1), 36 if unit else 56, width - 12, about=4)
    parts = frame(x, y, "draw", name)
    for i, chain in enumerate(chains):
        parts.append(path([(x(j), y(value)) for j, value in enumerate(chain, 1)], f"curve thin c{i % COLOURS + 1}"))
    return drawing(width, 212, title, parts)


def tracks(
    lines: Sequence[tuple[str, Points, str]],
    name: str,
    title: str,
    window: int = 1,
    height: float = 134.0,
    width: float = 300.0,
) -> str:
    """Named lines over steps, logarithmic like loss curves; with a window, running means over faint lines."""
    values = [value for _, points, _ in lines for _, value in points]
    log = min(values) > 0 and max(values) > 100 * min(values)
    top = 26.0 if len(lines) == 1 else 46.0
    y = Axis.over(values, top + height, top, about=4 if height > 100 else 2, log=log)
    x = Axis.within([step for _, points, _ in lines for step, _ in points], 52, width - 16, about=4)
    parts = frame(x, y, "step", f"{name} (logarithmic)" if log else name)
    if window > 1:
        for _, points, colour in lines:
            parts.append(path([(x(a), y(b)) for a, b in extremes(points)], f"curve faint {colour}"))
    left = 2.0
    for i, (label, points, colour) in enumerate(lines):
        weight = "thin" if i or len(lines) == 1 else "broad"  # so that it is visible beneath another line
        kind = f"curve {weight} {colour}"
        drawn = thin(running(points, window) if window > 1 else points)
        parts.append(path([(x(a), y(b)) for a, b in drawn], kind))
        if len(lines) > 1:
            parts += [line(left, 8, left + 16, 8, kind), text(left + 21, 12, label, f"series {colour}")]
            left += 38 + CHARACTER * len(label)
    return drawing(width, top + height + 42, title, parts)


def running(points: Points, window: int) -> Points:
    """Running means over ``window`` points, centred; fewer at the ends."""
    values = [value for _, value in points]
    sums, half, low, high = [0.0, *accumulate(values)], window // 2, min(values), max(values)
    means = []
    for i, (step, _) in enumerate(points):
        first, end = max(0, i - half), min(len(points), i + half + 1)
        mean = (sums[end] - sums[first]) / (end - first)
        means.append((step, min(max(mean, low), high)))  # rounding must not exceed the range of the axis
    return means


def extremes(points: Points, most: int = 300) -> Points:
    """At most ``most`` points of a noisy line: minimum and maximum of neighbours, so that its range stays."""
    if len(points) <= most:
        return points
    stride = -(-2 * len(points) // most)
    groups = [sorted(points[i : i + stride], key=itemgetter(1)) for i in range(0, len(points), stride)]
    return [point for group in groups for point in sorted({group[0], group[-1]})]


def tally(
    counts: Mapping[tuple[int, int], int], row_name: str, column_name: str, title: str, width: float = 300.0
) -> str:
    """Counts of pairs of whole numbers; if there are too many to show, neighbours share a cell."""
    tall, wide = (-(-(1 + max(pair[axis] for pair in counts)) // CELLS) for axis in (0, 1))
    cells: Counter[tuple[int, int]] = Counter()
    for (row, column), count in counts.items():
        cells[row // tall, column // wide] += count
    rows, columns = (1 + max(cell[axis] for cell in cells) for axis in (0, 1))
    left, most = 26 + CHARACTER * len(f"{(rows - 1) * tall:,}"), max(cells.values())
    across, down = min((width - left - 2) / columns, 44.0), min(STEP, 200 / rows)
    parts = [rect(left, 4, across * columns, down * rows, "cell")]
    for (row, column), count in sorted(cells.items()):
        says = f"{row_name} {_span(row, tall)}, {column_name} {_span(column, wide)}: {count:,}"
        place = left + column * across, 4 + row * down
        parts.append(rect(*place, across, down, "heat", 0.08 + 0.92 * count / most, says))
        if down > 13 and across > CHARACTER * len(f"{most:,}"):
            parts.append(text(place[0] + across / 2, place[1] + down / 2 + 4, f"{count:,}", "count", "middle"))
    bottom, widest = 4 + down * rows, 6 + CHARACTER * len(f"{(columns - 1) * wide:,}")
    for row in range(0, rows, -int(-15 // down)):
        parts.append(text(left - 7, 8 + (row + 0.5) * down, f"{row * tall:,}", "tick", "end"))
    for column in range(0, columns, -int(-widest // across)):
        parts.append(text(left + (column + 0.5) * across, bottom + 16, f"{column * wide:,}", "tick", "middle"))
    parts.append(text(left + across * columns / 2, bottom + 34, column_name, "name", "middle"))
    parts.append(text(11, 4 + down * rows / 2, row_name, "name", "middle", turn=-90))
    return drawing(width, bottom + 42, title, parts)


def _span(cell: int, size: int) -> str:
    return f"{cell:,}" if size == 1 else f"{cell * size:,} to {(cell + 1) * size - 1:,}"
