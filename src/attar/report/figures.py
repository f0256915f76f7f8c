"""The charts of a study."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from attar.assess.metrics import Bin
from attar.report import charts
from attar.report.blocks import Figure
from attar.report.estimate import Estimate
from attar.report.panels import Heat, matrix
from attar.report.rows import Row, by_size, rows, the_best, the_full
from attar.report.svg import MARKERS
from attar.study.results import Study

CLASSES = 20  #: most classes of which every accuracy is shown


def accuracy_chart(study: Study) -> str:
    """Test accuracy of every method and size as one SVG document that stands alone."""
    return accuracy(rows(study), standalone=True)


def accuracy(table: list[Row], standalone: bool = False) -> str:
    """Test accuracy of every row: mean, 95 % t-interval and single values."""
    full = the_full(table)
    groups = list(by_size(table).values())
    shown = [(group[0].amount if len(groups) > 1 else "", [_dot(row) for row in group]) for group in groups]
    if full:
        shown.append(("all training data" if len(groups) > 1 else "", [_dot(row) for row in table if row.full]))
    reference = full.accuracy.mean if full else None
    title = "Test accuracy of each method, in percent, with its 95 % t-interval"
    title += "".join(f"; {row.label} {row.caution}" for row in table if row.caution)
    return charts.dots_with_errors(shown, "test accuracy, %", title, reference, standalone)


def _dot(row: Row) -> charts.Dot:
    return charts.Dot(row.label, row.accuracy, row.accuracies, row.colour)


def accuracy_by_size(table: list[Row]) -> str | None:
    """Test accuracy against size, one line per method; None for a single size."""
    if len(by_size(table)) < 2:
        return None
    full = the_full(table)
    each = all(row.per_class is not None for row in table if not row.full)
    found: dict[str, list[Row]] = {}
    for row in table:
        if not row.full:
            found.setdefault(row.method, []).append(row)
    series = [
        charts.Series(ordered[0].label, [_point(row, each) for row in ordered], ordered[0].colour, _shape(i))
        for i, ordered in enumerate(found.values())
    ]
    reference = (full.label, full.accuracy.mean) if full else None
    x_name = "examples per class" if each else "examples"
    return charts.lines_with_errors(series, x_name, "test accuracy, %", "Test accuracy against size", reference)


def _point(row: Row, each: bool) -> tuple[float, Estimate]:
    return float(row.per_class if each and row.per_class is not None else row.size), row.accuracy


def _shape(i: int) -> str:
    return MARKERS[i % len(MARKERS)]


def calibration(table: list[Row]) -> list[Figure]:
    """Reliability diagrams of the methods at the size of the best, and of the full data in both ways."""
    best = the_best(table)
    shown = [row for row in table if row.full or (best and row.size == best.size)]
    return [
        Figure(
            charts.reliability(_pooled(row), row.colour, f"Reliability of {row.label} on the test examples"),
            row.label,
            f"ECE {row.test('ece'):.3f}{_floor(row)}",
        )
        for row in shown
    ]


def _floor(row: Row) -> str:
    """The ECE that perfect calibration would have; older files do not know it."""
    known = [run.test.ece_floor for run in row.runs if run.test.ece_floor is not None]
    return f", if calibrated {mean(known):.3f}" if known else ""


def _pooled(row: Row) -> list[Bin]:
    """The bins of all runs as one."""
    return [_merge(bins) for bins in zip(*(run.test.reliability for run in row.runs), strict=True)]


def _merge(bins: Sequence[Bin]) -> Bin:
    total = sum(b.size for b in bins)
    share = [b.size / max(total, 1) for b in bins]
    confidence = sum(s * b.confidence for s, b in zip(share, bins, strict=True))
    return Bin(total, confidence, sum(s * b.accuracy for s, b in zip(share, bins, strict=True)))


def learning(table: list[Row]) -> list[Figure]:
    """Loss curves of every row that learns, all its coresets in one chart."""
    figures = []
    for row in table:
        found = [curve for curve in {run.seed: run.curve for run in row.runs}.values() if curve]
        if found:
            svg = charts.curves(found, row.colour, f"Loss of {row.label} against step")
            figures.append(Figure(svg, row.label, row.amount))
    return figures


def confusion(table: list[Row], classes: Sequence[str]) -> list[Figure]:
    """Confusion matrices of the method that is best on validation and of the full data, summed over runs."""
    shown = [row for row in (the_best(table), the_full(table)) if row]
    return [
        Figure(
            charts.heatmap(_summed(row), classes, f"Confusion matrix of {row.label} on the test examples"),
            row.label,
            row.amount,
        )
        for row in shown
    ]


def _summed(row: Row) -> list[list[int]]:
    matrices = [run.test.confusion for run in row.runs]
    return [[sum(cells) for cells in zip(*lines, strict=True)] for lines in zip(*matrices, strict=True)]


def per_class(table: list[Row], classes: Sequence[str]) -> str | None:
    """Test accuracy of every row on every class, and on the worst class; None for more classes than fit."""
    if len(classes) > CLASSES:
        return None
    several, rows = len(by_size(table)) > 1, []
    for row in table:
        name = f"{row.label}, {row.per_class}" if several and row.per_class is not None else row.label
        cells = [_share([run.test.per_class[c] for run in row.runs]) for c in range(len(classes))]
        rows.append(Heat(name, cells, [f"{100 * mean(run.test.worst for run in row.runs):.1f}"]))
    return matrix(rows, classes, ["worst"], "class", "Test accuracy by class, in percent")


def _share(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return 100 * mean(known) if known else None
