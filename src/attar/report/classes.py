"""Recall and confusion of classes; many classes are put into groups that can be opened one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean
from string import ascii_uppercase

import torch
from torch import Tensor

from attar.report import charts
from attar.report.blocks import Figure, Table
from attar.report.panels import Heat, matrix
from attar.report.rows import Row, by_size, the_best, the_full

FEW = 20  #: classes of which everything is shown at once
GROUPS = 16  #: at most
SMALL = 10  #: classes of a group that is not cut further
OPENED = 25  #: most classes of a group whose charts can be read
PAIRS = 12  #: confusions in a table


@dataclass(frozen=True)
class Group:
    """Some classes, and charts of them alone."""

    name: str
    classes: list[str]
    figures: list[Figure] = field(default_factory=list)


@dataclass(frozen=True)
class Classwise:
    """Charts of all classes or of their groups, the groups, and a table of what stands out."""

    figures: list[Figure]
    groups: list[Group] = field(default_factory=list)
    table: Table | None = None


def recall(table: list[Row], classes: Sequence[str]) -> Classwise:
    """Test accuracy of every row on every class, or on groups of classes."""
    parts, shares = _groups(table, len(classes)), [_shares(row) for row in table]
    if parts is None:
        return Classwise([Figure(_recalls(table, shares, _single(range(len(classes))), classes, "class"), "", "")])
    names = list(ascii_uppercase[: len(parts)])
    together = Figure(_recalls(table, shares, parts, names, "group"), "", "")
    groups = []
    for name, members in zip(names, parts, strict=True):
        inside = [classes[c] for c in members]
        shown = len(members) <= OPENED
        charted = [_recalls(table, shares, _single(members), inside, "class")] if shown else []
        groups.append(Group(name, inside, [Figure(chart, "", "") for chart in charted]))
    return Classwise([together], groups, _worst(table, shares, classes))


def confusion(table: list[Row], classes: Sequence[str]) -> Classwise:
    """Confusion matrices of the method that is best on validation and of the full data, summed over runs."""
    shown = [(row, _summed(row)) for row in (the_best(table), the_full(table)) if row]
    parts, each = _groups(table, len(classes)), _single(range(len(classes)))
    if parts is None:
        return Classwise([_confused(row, counts, each, each, classes, classes) for row, counts in shown])
    names = list(ascii_uppercase[: len(parts)])
    together = [_confused(row, counts, parts, parts, names, names) for row, counts in shown]
    groups = []
    for name, members in zip(names, parts, strict=True):
        inside, single = [classes[c] for c in members], _single(members)
        columns = [*single, sorted(set(range(len(classes))) - set(members))]
        figures = [
            _confused(row, counts, single, columns, inside, [*inside, "other groups"])
            for row, counts in shown
            if len(members) <= OPENED
        ]
        groups.append(Group(name, inside, figures))
    return Classwise(together, groups, _pairs(*shown[0], classes))


def grouped(counts: Tensor, most: int = GROUPS, small: int = SMALL) -> list[list[int]]:
    """Classes in at most ``most`` groups, confused with each other more than with others.

    The largest group is cut in two until there are so many, or none has more than ``small`` classes.
    """
    share = counts.double() / counts.sum(1, keepdim=True).clamp_min(1)
    near = ((share + share.T) / 2 + 1e-6).fill_diagonal_(0)
    groups = [torch.arange(len(counts))]
    while len(groups) < most and max(map(len, groups)) > small:
        largest = groups.pop(max(range(len(groups)), key=lambda k: len(groups[k])))
        groups += [largest[side] for side in _halves(near[largest][:, largest])]
    return sorted(sorted(group.tolist()) for group in groups)


def _halves(near: Tensor) -> tuple[Tensor, Tensor]:
    r"""Spectral bisection: positions sorted by the second eigenvector of the normalised Laplacian, and cut.

    .. math:: L = I - D^{-1/2} W D^{-1/2}

    The cut is where the mean of W between the two sides is least, with at least a quarter on either side.
    """
    n, scale = len(near), near.sum(1).rsqrt()
    laplacian = torch.eye(n, dtype=near.dtype) - scale[:, None] * near * scale
    order = (torch.linalg.eigh(laplacian).eigenvectors[:, 1] * scale).argsort(stable=True)
    sums = near[order][:, order].cumsum(0).cumsum(1)
    sizes = torch.arange(1, n)
    between = (sums[:-1, -1] - sums.diagonal()[:-1]) / (sizes * (n - sizes))
    first = max(1, n // 4)
    cut = first + int(between[first - 1 : n - first].argmin())
    return order[:cut], order[cut:]


def _groups(table: list[Row], count: int) -> list[list[int]] | None:
    """The groups of many classes, by the confusions of the best row; None for few."""
    if count <= FEW:
        return None
    return grouped(_summed(the_best(table) or table[0]))


def _single(members: Iterable[int]) -> list[list[int]]:
    """Groups of one class each."""
    return [[c] for c in members]


def _summed(row: Row) -> Tensor:
    """The confusion matrix over all runs."""
    return torch.tensor([run.test.confusion for run in row.runs]).sum(0)


def _shares(row: Row) -> list[float | None]:
    """The accuracy on every class in percent, mean over runs; None for a class without examples."""
    return [_mean(values) for values in zip(*(run.test.per_class for run in row.runs), strict=True)]


def _mean(values: Sequence[float | None], scale: float = 100) -> float | None:
    known = [value for value in values if value is not None]
    return scale * mean(known) if known else None


def _recalls(
    table: list[Row],
    shares: Sequence[Sequence[float | None]],
    parts: Sequence[Sequence[int]],
    names: Sequence[str],
    kind: str,
) -> str:
    several, heat = len(by_size(table)) > 1, []
    for row, share in zip(table, shares, strict=True):
        name = f"{row.label}, {row.per_class}" if several and row.per_class is not None else row.label
        cells = [_mean([share[c] for c in part], 1) for part in parts]
        heat.append(Heat(name, cells, [f"{row.recall('worst').mean:.1f}"]))
    return matrix(heat, names, ["worst"], kind, f"Test accuracy by {kind}, in percent")


def _confused(
    row: Row,
    counts: Tensor,
    down: Sequence[Sequence[int]],
    across: Sequence[Sequence[int]],
    names: Sequence[str],
    heads: Sequence[str],
) -> Figure:
    """The matrix of a row between these groups of true and predicted classes."""
    left, right = (_members(parts, len(counts)) for parts in (down, across))
    title = f"Confusion matrix of {row.label} on the test examples"
    return Figure(charts.heatmap((left @ counts @ right.T).tolist(), names, title, heads), row.label, row.amount)


def _members(parts: Sequence[Sequence[int]], count: int) -> Tensor:
    """One line a group, with ones at its classes."""
    found = torch.zeros(len(parts), count, dtype=torch.int64)
    for line, part in zip(found, parts, strict=True):
        line[list(part)] = 1
    return found


def _worst(table: list[Row], shares: Sequence[Sequence[float | None]], classes: Sequence[str]) -> Table:
    """The classes of lowest recall of the best row, beside the full data."""
    best, full = the_best(table), the_full(table)
    shown = [(row, share) for row, share in zip(table, shares, strict=True) if row is best or row is full]
    known = sorted((value, c) for c, value in enumerate(shown[0][1]) if value is not None)[:PAIRS]
    lines = [[classes[c], *("–" if (v := share[c]) is None else f"{v:.0f}" for _, share in shown)] for _, c in known]
    return Table("Classes of lowest accuracy", ["Class", *(f"{row.label}, %" for row, _ in shown)], lines)


def _pairs(row: Row, counts: Tensor, classes: Sequence[str]) -> Table:
    """The most frequent confusions of a row."""
    wrong, totals = counts.clone().fill_diagonal_(0), counts.sum(1).tolist()
    numbers, places = wrong.flatten().sort(descending=True, stable=True)
    found = [(n, *divmod(at, len(classes))) for n, at in zip(numbers[:PAIRS].tolist(), places.tolist(), strict=False)]
    lines = [[classes[i], classes[j], f"{n:,}", f"{100 * n / totals[i]:.0f}"] for n, i, j in found if n]
    return Table(f"Most frequent confusions of {row.label}", ["True class", "Predicted", "Count", "% of class"], lines)
