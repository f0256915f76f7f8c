"""The page of class-incremental learning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from attar.assess.statistics import SPREAD
from attar.continual.results import Continual, Episode, curve, first_stage_loss, forgetting, interval, last
from attar.report import charts, words
from attar.report.application import write_page
from attar.report.blocks import Block, Figure, Table, percent, plural
from attar.report.estimate import Percent
from attar.report.panels import Heat, matrix
from attar.report.rows import colours, label
from attar.report.svg import MARKERS
from attar.study.spec import FULL

MEANING = {
    "memory": "After every stage, a new network is trained on the memory alone.",
    "finetune": "In every stage, the network of the last stage, with outputs for the new classes, is trained on the "
    "memory and the new data, with a distillation loss on the old classes.",
}


def write_continual(found: Continual, path: Path) -> Path:
    """Write the page; returns ``path``."""
    name, stages = found.stages[0].name, len(found.stages)
    return write_page(
        path,
        f"{name}: {plural(stages, 'stage')}, {found.config['per_class']} examples per class in memory",
        summary(found),
        [_scores(found), _curves(found), _stages(found), _kept(found)],
        found.command,
        {"Settings": found.config, "Versions": found.versions, "Machine": found.machine},
    )


def summary(found: Continual) -> str:
    """What was done, which method is best on validation, and its test score."""
    groups = {method: runs for method, runs in found.groups().items() if method != FULL}
    sizes = [stage.val for stage in found.stages]
    best = max(groups, key=lambda method: mean(mean(curve(run.validation, sizes)) for run in groups[method]))
    scores = interval([found.average(run) for run in groups[best]])
    full = found.groups().get(FULL)
    top = f" With all old data kept, it is {interval([found.average(run) for run in full])}\u00a0%." if full else ""
    return (
        f"{MEANING[found.config['regime']]} On validation, the memory of {label(best)} has the highest mean "
        f"accuracy: its average test accuracy over the stages is {scores}\u00a0%.{top}"
    )


def _scores(found: Continual) -> Block:
    rows = []
    for method, runs in found.groups().items():
        end = interval([found.curve(run)[-1] for run in runs])
        recalls = last([run.balanced for run in runs]), last([run.worst for run in runs])
        spent = mean(sum(cost.cpu for cost in run.reduce_cost) for run in runs)
        scores = ([score(run.test) for run in runs] for score in (forgetting, first_stage_loss))
        average = interval([found.average(run) for run in runs])
        shown = *recalls, *map(interval, scores), f"{len(runs)}", words.seconds(spent)
        rows.append((label(method), average, end, *shown))
    recall = ("Balanced, %", "Worst class, %")
    head = ("Memory", "Average, %", "Last stage, %", *recall, "Forgetting, %", "First stage’s loss, %")
    text = (
        f"Test accuracy in percent, mean over seeds; {SPREAD}. Average accuracy is the mean over the stages of "
        "the accuracy on all classes seen so far. Forgetting is how far the accuracy on a stage’s own data fell from "
        "its best to the end, on average over the stages before the last; the first stage’s loss is how far it fell "
        "for the first stage. A negative number is a gain. Balanced accuracy, the mean over classes, and the lowest "
        "recall of a class are those after the last stage."
    )
    if found.majority:
        text += f" Always answering the most frequent training class would then have {percent(found.majority[-1])}."
    text += "".join(f" {line}." for line in found.mixing())
    return Block("Scores", text, table=Table("Scores", (*head, "Seeds", "Reduction, CPU s"), rows))


def _curves(found: Continual) -> Block:
    shades = colours(found.groups())
    series = []
    for place, (method, runs) in enumerate(found.groups().items()):
        points = [(float(t + 1), _estimate([found.curve(run)[t] for run in runs])) for t in range(len(found.stages))]
        series.append(charts.Series(label(method), points, shades[method], MARKERS[place % len(MARKERS)]))
    svg = charts.lines_with_errors(series, "stage", "test accuracy, %", "Test accuracy by stage", None, log=False)
    note = "Whiskers are 95 % t-intervals over seeds, cut off at 0 and 100."
    return Block(
        "By stage", "Test accuracy after every stage on the data of all stages so far.", [Figure(svg, "", note)]
    )


def _stages(found: Continual) -> Block:
    columns = [str(s + 1) for s in range(len(found.stages))]
    figures = []
    for method, runs in found.groups().items():
        rows = [Heat(f"after {t + 1}", _cells(runs, t, len(columns))) for t in range(len(columns))]
        svg = matrix(rows, columns, (), "stage", f"Test accuracy of {label(method)} by stage")
        figures.append(Figure(svg, label(method), f"mean over {plural(len(runs), 'seed')}"))
    text = "Test accuracy in percent after every stage (rows) on the data of each stage (columns)."
    return Block("What is forgotten", text, figures)


def _kept(found: Continual) -> Block:
    rows = [
        (f"{place + 1}", stage.name, ", ".join(stage.classes), f"{stage.train:,}", f"{stage.test:,}")
        for place, stage in enumerate(found.stages)
    ]
    table = Table("Stages", ("Stage", "Data", "Classes", "Training examples", "Test examples"), rows)
    return Block("Stages", "The classes of every stage; all runs have the same ones, in the same order.", table=table)


def _cells(runs: Sequence[Episode], t: int, columns: int) -> list[float | None]:
    known: list[float | None] = [100 * mean(run.test[t][s] for run in runs) for s in range(t + 1)]
    return known + [None] * (columns - t - 1)


def _estimate(shares: Sequence[float]) -> Percent:
    return Percent.of([100 * share for share in shares])
