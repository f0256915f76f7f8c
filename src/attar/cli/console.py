"""What a person sees while something runs, and tables of what came out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from statistics import mean
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.progress import TimeRemainingColumn as TimeLeft
from rich.table import Table
from rich.text import Text

from attar.assess.metrics import Scores
from attar.condense.driver import Step
from attar.condense.observers import Interrupted
from attar.study.cross import Crossings
from attar.study.grid import Progress as Part
from attar.study.results import COLUMNS, Study, figure, values

EVERY = 30.0  #: seconds between two lines about a long step, where there is no terminal
out = Console(markup=False)  # what is printed may come from a file
err = Console(stderr=True, markup=False)


def interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Say how to go on after a Ctrl-C that saved its work; typer would only end the program."""

    @wraps(command)
    def call(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except Interrupted as stop:
            err.print(f"{stop} Run the same command again to go on.", markup=False, soft_wrap=True)
            raise typer.Exit(130) from stop
        except KeyboardInterrupt as stop:
            err.print("Stopped. What was finished is kept: run the same command again to go on.")
            raise typer.Exit(130) from stop

    return call


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Warnings of what runs inside, a line each, when it is done."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    for warning in said:
        err.print(f"warning: {warning.message}", style="yellow", markup=False)


class _Rate(ProgressColumn):
    """Steps a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "", style="dim")


class _Note(ProgressColumn):
    """What the task has to say."""

    def render(self, task: Task) -> Text:
        return Text(str(task.fields.get("note", "")), style="cyan")


def bar() -> Progress:
    """A progress bar with rate and time left; it goes away when done."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        _Rate(),
        TimeLeft(compact=True, elapsed_when_finished=True),
        _Note(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


@contextmanager
def fetching() -> Iterator[Callable[[str, int, int | None], None]]:
    """What to call while files are fetched, with the name of each, its bytes so far and its bytes in all."""
    shown = bar()  # starts with the first byte, so that data on disk shows nothing
    tasks: dict[str, TaskID] = {}

    def note(name: str, done: int, total: int | None) -> None:
        shown.start()
        if name not in tasks:
            tasks[name] = shown.add_task(f"fetch {name}")
        shown.update(tasks[name], completed=done, total=total)

    try:
        yield note
    finally:
        shown.stop()


def following(shown: Progress) -> Callable[[Part], None]:
    """A watcher of a study: a bar for each stage in a terminal, elsewhere a line for each part that is done."""
    tasks: dict[str, TaskID] = {}

    def watch(part: Part) -> None:
        if not shown.console.is_terminal:
            shown.console.print(f"{part.done} of {part.total} {part.stage}: {part.line}", soft_wrap=True, style="none")
            return
        if part.stage not in tasks:
            tasks[part.stage] = shown.add_task(part.stage)
        shown.update(tasks[part.stage], total=part.total, completed=part.done, note=part.line)

    return watch


def progress(steps: Iterable[Step], shown: Progress, description: str) -> Iterator[Step]:
    """An observer that shows where a condensation stands: loss, and validation score where there is one."""
    task = shown.add_task(description, total=None)
    said = time.monotonic()
    for step in steps:
        note = f"loss {step.loss:.4g}"
        if "validation" in step.metrics:
            note += f"  validation {step.metrics['validation']:.3f}"
        shown.update(task, total=step.total, completed=step.number, note=note)
        if not shown.console.is_terminal and time.monotonic() - said > EVERY:
            said = time.monotonic()
            shown.console.print(f"{description.strip()}: {step.number} of {step.total}, {note}", soft_wrap=True)
        yield step
    shown.remove_task(task)


def score_table(study: Study) -> Table:
    """Test scores of a study, mean ± standard error over seeds, with what each cost; fits 80 columns."""
    about = f"{study.data['name']}, {study.config['network']}, test set of {study.data['test']:,}"
    table = Table(title=about, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=_notes(study), caption_justify="left")
    table.add_column("method", no_wrap=True)
    for heading in ("n", *(name for name, _, _ in COLUMNS), "s", "MB"):
        table.add_column(heading, justify="right", no_wrap=True)
    for (method, size), runs in study.groups().items():
        time = mean([run.reduce_cost.wall + run.infer_cost.wall for run in runs])
        memory = max(max(run.reduce_cost.memory, run.infer_cost.memory) for run in runs)
        table.add_row(
            method,
            "all" if size is None else str(size),
            *(figure(values(runs, pick), digits) for _, pick, digits in COLUMNS),
            f"{time:.1f}",
            f"{memory / 1e6:.0f}",
        )
    return table


def transfer_table(crossed: Crossings) -> Table:
    """Test accuracy of every network on the coresets of a study, mean ± standard error over seeds."""
    table = Table(title="test accuracy in % of other networks", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("method", "n", *crossed.networks):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for (method, size), found in crossed.rows():
        percent = ([100 * value for value in found.get(network, [])] for network in crossed.networks)
        table.add_row(method, str(size), *(figure(values, 1) if values else "–" for values in percent))
    return table


def _notes(study: Study) -> str:
    names = {method for method, _ in study.groups()}
    notes = ["n: examples per class; s, MB: time and peak memory of reduction and inference"]
    notes += ["uniform: a random subset"] if "uniform" in names else []
    for size in sorted({run.per_class for run in study.runs if run.per_class is not None}):
        if best := study.best_selection(size):
            notes.append(f"best selection at {size} per class, by validation: {best}")
    notes += ["full: all training data with the same training budget"] if "full" in names else []
    return "\n".join(notes)


def summary(scores: list[Scores], n: int) -> str:
    """Scores over seeds on ``n`` test examples, in a line."""
    names = ("accuracy", "nll", "ece", "brier")
    parts = [f"{name} {figure([getattr(s, name) for s in scores], 3)}" for name in names]
    return f"{'  '.join(parts)}   ({n:,} test examples, {len(scores)} seed{'s' if len(scores) > 1 else ''})"
