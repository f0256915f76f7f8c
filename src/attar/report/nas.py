"""The page of an architecture search."""

from __future__ import annotations

from pathlib import Path

from attar.assess.statistics import SPREAD
from attar.nas.results import TOP, Nas, recalls, summarised
from attar.report.application import write_page
from attar.report.blocks import Block, Figure, Table, percent, plural
from attar.report.rows import colours, label
from attar.report.svg import Axis, drawing, frame, marker
from attar.study.spec import FULL

WIDTH, HEIGHT = 300.0, 240.0


def write_nas(found: Nas, path: Path) -> Path:
    """Write the page; returns ``path``."""
    return write_page(
        path,
        f"{found.data['name']}: a search over {plural(len(found.networks), 'network')}",
        summary(found),
        [_searches(found), _ranks(found), _best(found)],
        found.command,
        {"Settings": found.config, "Data": found.data, "Versions": found.versions, "Machine": found.machine},
    )


def summary(found: Nas) -> str:
    """What was done, and what the full data would choose."""
    best = found.chosen(FULL, found.searches()[FULL][0])
    size = f"{found.config['per_class']} examples per class"
    return (
        f"Every network was trained on proxy sets of {size} and, as a reference, on all {found.data['train']:,} "
        f"training examples. The full data chooses {best.network}, with {percent(best.test or 0)} test accuracy."
    )


def _searches(found: Nas) -> Block:
    rows = []
    for row, seeds in found.searches().items():
        network = found.chosen(row, seeds[0]).network
        shown = summarised(found, row, seeds)
        rows.append((label(row), *shown[:3], *recalls(found, row, seeds), *shown[3:], network, str(len(seeds))))
    chosen = ("Chosen, test %", "Balanced, %", "Worst class, %")
    head = ("Trained on", "Correlation", f"Top {TOP}", *chosen, "Time, %", "Without the set, %")
    text = (
        "Correlation is Spearman’s, of validation accuracies with those of training on the full data: over all "
        f"networks, and over the {TOP} that rank best in the search. The chosen network is the one with the highest "
        "validation accuracy; its test accuracy, its balanced accuracy (the mean over classes) and the lowest recall "
        "of a class are those of training on the full data. Time is CPU time relative to training all networks on the "
        f"full data, with and without making the proxy set. With several seeds: mean; {SPREAD}."
    )
    if found.majority is not None:
        text += f" Always answering the most frequent training class has {percent(found.majority)}."
    text += "".join(f" {line}." for line in found.mixing())
    problems = [f"{trial.row}, {trial.network}: {trial.problem}" for trial in found.trials if trial.problem]
    table = Table("Searches", (*head, "Chosen, first seed", "Seeds"), rows)
    return Block("Searches", text, table=table, warnings=problems)


def _ranks(found: Nas) -> Block:
    shades = colours(found.searches())
    figures = []
    for row, seeds in found.searches().items():
        if row != FULL:
            note = f"correlation {found.correlation(row, seeds[0]):.2f}, seed {seeds[0]}"
            figures.append(Figure(_scatter(found, row, seeds[0], shades[row]), label(row), note))
    text = (
        "Validation accuracy of every network after training on a proxy set (across) and on the full data (upwards). "
        "The square is the network that the search chose."
    )
    return Block("Ranking", text, figures)


def _scatter(found: Nas, row: str, seed: int, colour: str) -> str:
    ours = [100 * value for value in found.accuracies(row, seed)]
    full = [100 * (trial.validation or 0.0) for trial in found.reference()]
    x, y = Axis.over(ours, 44, WIDTH - 12, about=4), Axis.over(full, HEIGHT - 50, 26, about=4)
    parts = frame(x, y, "on the proxy set, %", "on the full data, %")
    chosen = found.ranked(row, seed)[0]
    for place, (across, up, name) in enumerate(zip(ours, full, found.networks, strict=True)):
        shape, kind = ("square", "mark") if place == chosen else ("circle", "seed")
        parts.append(marker(x(across), y(up), shape, f"{kind} {colour}", f"{name}: {across:.1f}, {up:.1f}"))
    return drawing(WIDTH, HEIGHT - 8, f"Validation accuracy on {label(row)} and on the full data", parts)


def _best(found: Nas) -> Block:
    full = found.searches()[FULL][0]
    rows = []
    for place in found.ranked(FULL, full)[:TOP]:
        trial = found.reference()[place]
        ranks = [str(found.ranked(row, seeds[0]).index(place) + 1) for row, seeds in found.searches().items()]
        scores = percent(trial.validation or 0), percent(trial.test or 0)
        rows.append((trial.network, f"{trial.parameters:,}", *scores, *ranks[:-1]))
    names = [label(row) for row in found.searches() if row != FULL]
    table = Table("Best networks", ("Network", "Parameters", "Validation", "Test", *names), rows)
    text = "The networks that are best on validation after training on the full data, with their rank in each search."
    return Block("Best networks", text, table=table)
