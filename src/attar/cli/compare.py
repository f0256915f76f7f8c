"""`attar compare`: methods × sizes × seeds under one training budget."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from attar.cli.arguments import DATA_HELP, Accelerated, CheckpointEvery, Device, Folder, Recipe
from attar.cli.console import bar, command, err, fetching, following, out, step_observers, warnings_shown
from attar.cli.engine import steps_elsewhere
from attar.cli.fields import flag_of, spec_of
from attar.cli.options import Chosen
from attar.cli.tables import cost_table, score_table, transfer_table
from attar.core.device import device_of
from attar.core.errors import AttarError
from attar.core.files import write_text
from attar.data import Split
from attar.engine.pool import LOCAL, Engine
from attar.report import accuracy_chart, report
from attar.report.rows import rows
from attar.report.words import leaks
from attar.select.budget import warn_if_skewed
from attar.study import Study, StudySpec
from attar.study.cross import Crossings
from attar.study.grid import grid
from attar.study.runner import run_study

MANY = (
    "methods",
    "per_class",
    "fraction",
    "seeds",
    "transfer",
)  # fields whose flags take several values, separated by commas


def _flag(name: str, *flags: str) -> Any:
    return flag_of(StudySpec, MANY, name, *flags)


def compare(
    context: typer.Context,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)] = None,
    methods: Annotated[str | None, _flag("methods", "--methods", "-m")] = None,
    per_class: Annotated[str | None, _flag("per_class", "--per-class", "-n")] = None,
    fraction: Annotated[str | None, _flag("fraction")] = None,
    budget: Annotated[str | None, _flag("budget")] = None,
    seeds: Annotated[str | None, _flag("seeds")] = None,
    output: Folder = Path("comparison"),
    recipe: Recipe = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of all methods that learn.", show_default="each method's own")
    ] = None,
    protocol: Annotated[str | None, _flag("protocol")] = None,
    network: Annotated[str | None, _flag("network")] = None,
    experts: Annotated[str | None, _flag("experts")] = None,
    sampler: Annotated[str | None, _flag("sampler", "--sampler", "-s")] = None,
    draws: Annotated[int | None, _flag("draws")] = None,
    evaluations: Annotated[int | None, _flag("evaluations")] = None,
    baselines: Annotated[bool | None, _flag("baselines", "--baselines/--no-baselines")] = None,
    converged: Annotated[bool | None, _flag("converged", "--converged/--no-converged")] = None,
    transfer: Annotated[str | None, _flag("transfer")] = None,
    target: Annotated[str | None, _flag("target")] = None,
    scaling: Annotated[str | None, _flag("scaling")] = None,
    val: Annotated[float | None, _flag("val")] = None,
    test_data: Annotated[str | None, _flag("test_data", "--test")] = None,
    vectors: Annotated[str | None, _flag("vectors")] = None,
    length: Annotated[int | None, _flag("length")] = None,
    columns: Annotated[str | None, _flag("columns")] = None,
    resize: Annotated[str | None, _flag("resize")] = None,
    imbalance: Annotated[float | None, _flag("imbalance")] = None,
    flip: Annotated[float | None, _flag("flip")] = None,
    base: Annotated[str | None, _flag("base")] = None,
    engine: Engine = LOCAL,
    device: Device = "cpu",
    accelerate: Accelerated = "none",
    checkpoint_every: CheckpointEvery = None,
    *,
    chosen: Chosen,
) -> None:
    """Compare methods × sizes × seeds under one training budget: a table, a plot and a report.

    A random subset, herding and the full data are added for comparison, with the same network and training, and the
    full data trained to convergence, which takes long for large data but is kept for other studies:

        attar compare digits --methods dm,dc --per-class 1,10 --seeds 0,1,2
        attar compare --recipe study.toml -o results --workers 2

    Finished runs are kept: after an interruption, the same command runs only what is missing. With other methods, sizes
    or seeds the study grows: the results always cover all runs in the folder. A recipe can also set the options of each
    method, and compare variants of one method (see benchmarks/recipes). Options given here override the recipe.
    """
    spec = _spec(recipe, context.params, steps, chosen)
    place = device_of(device)
    with fetching() as note, warnings_shown():
        split = spec.load_data(progress=note).to(place)
        warn_if_skewed(split.train.hard.bincount(), spec.budget)
    study = _run(spec, split, output, engine, accelerate, checkpoint_every)
    present(study, output, split)
    _tell_earlier(study, spec.sized(split), output)


def _spec(recipe: Path | None, flags: Mapping[str, Any], steps: int | None, chosen: Chosen) -> StudySpec:
    """The recipe's spec, or the default one, changed by the flags."""
    spec = spec_of(StudySpec, recipe, flags, chosen, many=MANY, counts=("per_class", "seeds"))
    if spec.data is None:
        raise AttarError("Give the data to compare on, such as `attar compare digits --methods dm,dc`.")
    return spec if steps is None else spec.stepped(steps)


def _run(
    spec: StudySpec, split: Split, folder: Path, engine: Engine, accelerate: str, checkpoint_every: float | None
) -> Study:
    """Run the study and show its progress."""
    with bar() as shown, warnings_shown(), steps_elsewhere(shown, folder, engine):
        return run_study(
            spec,
            split,
            folder,
            command=command(),
            engine=engine,
            accelerate=accelerate,
            observers=step_observers(shown, engine),
            checkpoint_every=checkpoint_every,
            watch=following(shown),
        )


def present(study: Study, folder: Path, split: Split) -> None:
    """Write the table, the plot and the report of a study, and print its figures."""
    write_text(folder / "table.csv", study.csv())
    write_text(folder / "accuracy.svg", accuracy_chart(study))
    out.print(score_table(study))
    out.print(cost_table(study))
    if crossed := Crossings.load(folder):
        out.print(transfer_table(crossed))
        for problem in crossed.problems:
            err.print(f"warning: {problem}", style="yellow")
    for warning in leaks(rows(study)):
        err.print(f"warning: {warning}", style="yellow")
    out.print(f"report: {report(study, folder / 'report.html', data=split).resolve()}", soft_wrap=True)


def _tell_earlier(study: Study, spec: StudySpec, folder: Path) -> None:
    asked = {(job.method, job.per_class, job.seed) for job in grid(spec)}
    if before := {(run.method, run.per_class, run.seed) for run in study.runs} - asked:
        seeds = ", ".join(map(str, sorted({seed for *_, seed in before})))
        out.print(f"The results include {len(before)} earlier runs in {folder} (seeds {seeds}).", soft_wrap=True)
