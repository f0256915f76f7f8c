"""The charts of a study."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from attar.assess.metrics import Bin
from attar.report import charts
from attar.report.blocks import Figure
from attar.report.estimate import Estimate
from attar.report.rows import Row, by_size, rows, the_best, the_full
from attar.report.svg import MARKERS
from attar.study.compared import RANDOM
from attar.study.results import Run, Study, by_seed, values


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


def accuracy_by_cost(table: list[Row]) -> str | None:
    """Test accuracy against the time to make a coreset and to train on it; None where times are not known."""
    found: dict[str, list[Row]] = {}
    for row in table:
        if all(_seconds(run) > 0 for run in row.runs):
            found.setdefault(row.method, []).append(row)
    if not found:
        return None
    series = [
        (
            some[0].label,
            [(Estimate.of(values(row.runs, _seconds)), row.accuracy) for row in some],
            some[0].colour,
            _shape(i),
        )
        for i, some in enumerate(found.values())
    ]
    title = "Test accuracy against seconds to make and to train on it"
    return charts.scatter_with_errors(series, "seconds, logarithmic", "test accuracy, %", title)


def _seconds(run: Run) -> float:
    return run.reduce_cost.wall + run.infer_cost.wall


def gain(table: list[Row]) -> str | None:
    """Test accuracy of every row minus that of a random subset of its size, seed by seed; None without one."""
    groups = [(group, [row for row in group if row.gap]) for group in by_size(table).values()]
    shown = [
        (some[0].amount if len(groups) > 1 else "", [_gain(row, group) for row in some])
        for group, some in groups
        if some
    ]
    title = "Test accuracy minus that of a random subset of the same size, with its 95 % t-interval"
    return charts.dots_with_errors(shown, "points above random", title, 0.0, spec="+.1f") if shown else None


def _gain(row: Row, group: list[Row]) -> charts.Dot:
    random = next(other for other in group if other.method == RANDOM)
    ours, theirs = (by_seed(one.runs, lambda run: 100 * run.test.accuracy) for one in (row, random))
    gaps = [value - theirs[seed] for seed, value in ours.items() if seed in theirs]
    return charts.Dot(row.label, Estimate.of(gaps), gaps, row.colour)


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
