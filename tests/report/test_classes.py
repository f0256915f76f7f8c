from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from attar.report import render
from attar.report.classes import GROUPS, confusion, grouped, recall
from attar.report.rows import rows
from attar.study.results import Study
from tests.known import generator
from tests.report.reading import section, text
from tests.report.studies import study


def blocks(count: int, each: int) -> list[list[int]]:
    """Classes c, c + count, c + 2 count, ... are confused with each other alone."""
    n = count * each
    return [[80 if i == j else 10 if i % count == j % count else 0 for j in range(n)] for i in range(n)]


def many(folder: Path, classes: int) -> Study:
    """A study of many classes, confused in blocks of ten."""
    names = [f"kind {c}" for c in range(classes)]
    pool = torch.rand(60, 1, 6, 6, generator=generator())
    made = study(folder, ("uniform", "full"), (1,), 2, names, pool, torch.arange(60) % classes)
    counts = blocks(classes // 10, 10)
    return replace(made, runs=[replace(run, test=replace(run.test, confusion=counts)) for run in made.runs])


def test_classes_that_are_confused_with_each_other_are_in_one_group() -> None:
    assert grouped(torch.tensor(blocks(4, 6)), small=6) == [[c, c + 4, c + 8, c + 12, c + 16, c + 20] for c in range(4)]
    assert grouped(torch.tensor([[5, 0], [0, 5]])) == [[0, 1]]
    assert sorted(c for part in grouped(torch.zeros(30, 30)) for c in part) == list(range(30))


def test_a_hundred_classes_are_shown_in_groups_that_open(tmp_path: Path) -> None:
    made = many(tmp_path, 100)
    table, names = rows(made), [f"kind {c}" for c in range(100)]
    shown = confusion(table, names)
    assert [group.classes for group in shown.groups] == [[f"kind {c + 10 * k}" for k in range(10)] for c in range(10)]
    assert all(len(group.figures) == 2 for group in shown.groups)
    assert [group.classes for group in recall(table, names).groups] == [group.classes for group in shown.groups]
    page = render(made, tmp_path)
    assert section(page, "confusion").count("<details") == section(page, "classes").count("<details") > 5
    assert len(page) < 1_000_000


def test_counts_of_a_group_and_of_the_others_add_up(tmp_path: Path) -> None:
    made = many(tmp_path, 100)
    shown = confusion(rows(made), [f"kind {c}" for c in range(100)])
    figure = shown.groups[0].figures[0].svg
    inside = f"{shown.groups[0].classes[0]} predicted as {shown.groups[0].classes[0]}: {2 * 80}"
    assert inside in figure  # two seeds


def test_the_worst_classes_and_confusions_are_named(tmp_path: Path) -> None:
    made = many(tmp_path, 100)
    counts = blocks(10, 10)
    counts[7][8], counts[7][7] = 60, 20
    runs = [replace(run, test=replace(run.test, confusion=counts)) for run in made.runs]
    page = render(replace(made, runs=runs), tmp_path)
    assert "lowest accuracy. Class uniform (random), % full data, % kind 7 12 12 " in text(section(page, "classes"))
    assert "% of class kind 7 kind 8 120 35 " in text(section(page, "confusion"))


def test_a_page_of_a_thousand_classes_stays_small_and_readable(tmp_path: Path) -> None:
    page = render(many(tmp_path, 1000), tmp_path)
    assert len(page) < 1_000_000
    assert section(page, "confusion").count("<details") == GROUPS
    assert "too many classes for a chart" in text(section(page, "confusion"))
