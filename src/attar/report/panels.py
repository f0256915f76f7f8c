"""Charts of a closer look: heat with numbers, a trade-off curve, heaps of dots, traces of chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from attar.report.charts import WIDTH
from attar.report.rows import COLOURS
from attar.report.svg import CHARACTER, Axis, drawing, frame, line, marker, path, rect, shorten, text

LABEL, HEAD = 19, 12  #: characters of the longest label of a row, and of a column, that are drawn whole
STEP = 23.0  #: height of a row of heat
BESIDE = 48.0  #: width of a column of plain numbers


class Heat(NamedTuple):
    """One row of a heat map: cells that are coloured, and words beside them that are not."""

    label: str
    cells: Sequence[float | None]
    beside: Sequence[str] = ()
    strong: bool = False  #: a summary of the rows before it, set apart from them


def matrix(rows: Sequence[Heat], columns: Sequence[str], beside: Sequence[str], name: str, title: str) -> str:
    """Percentages in coloured cells: the lowest of all is pale, the highest has full colour."""
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
    """Names over their columns, turned where they are too wide, and where the rows begin."""
    names = [shorten(column, HEAD) for column in columns]
    widest = CHARACTER * max(map(len, names))
    middles = [left + (i + 0.5) * cell for i in range(len(names))]
    if widest < cell:
        return [text(x, top + 13, head, "tick", "middle") for x, head in zip(middles, names, strict=True)], top + 20
    low = top + widest + 6
    return [text(x + 4, low, head, "tick", turn=-90) for x, head in zip(middles, names, strict=True)], low + 7


def trade_off(points: Sequence[tuple[float, float]], colour: str, title: str, reference: float) -> str:
    """Accuracy among the examples answered against their share, both in percent; dashed where all are answered."""
    y = Axis.over([*(accuracy for _, accuracy in points), reference], 190, 26, about=4)
    x = Axis([0, 25, 50, 75, 100], 44, WIDTH - 12, 0, 100)
    parts = frame(x, y, "examples answered, surest first, %", "accuracy among them, %")
    parts.append(line(x.start, y(reference), x.end, y(reference), "reference"))
    parts.append(path([(x(share), y(accuracy)) for share, accuracy in points], f"curve {colour}"))
    return drawing(WIDTH, 232, title, parts)


def heaps(values: Sequence[float], colour: str, title: str, name: str, reference: tuple[str, float]) -> str:
    """One dot a value, heaped where many are alike, with a dashed line to compare with."""
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
    """A quantity along every chain, one line a chain; ``unit`` where it is a probability."""
    values = [value for chain in chains for value in chain]
    y = Axis([0, 0.5, 1], 170, 26, 0, 1) if unit else Axis.over(values, 170, 26, about=4)
    x = Axis.within(range(1, max(map(len, chains)) + 1), 36 if unit else 56, width - 12, about=4)
    parts = frame(x, y, "kept draw", name)
    for i, chain in enumerate(chains):
        parts.append(path([(x(j), y(value)) for j, value in enumerate(chain, 1)], f"curve thin c{i % COLOURS + 1}"))
    return drawing(width, 212, title, parts)
