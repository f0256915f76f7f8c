"""`attar compare`: methods × sizes × seeds under one training budget."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from attar.cli.arguments import DATA_HELP, Device, Folder, Recipe, numbers, words
from attar.cli.console import bar, err, fetching, following, out, progress, score_table, transfer_table
from attar.cli.options import Chosen
from attar.core import registry
from attar.core.device import device_of
from attar.core.errors import AttarError
from attar.core.files import write_text
from attar.report import accuracy_chart, report
from attar.report.rows import rows
from attar.report.words import leaks
from attar.study import Study, StudySpec
from attar.study.cross import Crossings
from attar.study.grid import grid
from attar.study.runner import run_study

FIELDS = registry.fields(StudySpec)
MANY = ("methods", "per_class", "seeds", "transfer")  # fields whose flags take several values, separated by commas


def _flag(name: str, *flags: str) -> Any:
    """The option of a field of the spec: its name, help and default are written there."""
    info = FIELDS[name]
    default = info.get_default(call_default_factory=True)
    usual = ",".join(map(str, default)) if name in MANY else str(default)
    text = f"{info.description or ''}{', separated by commas' if name in MANY else ''}."
    shown: str | bool = usual if default not in (None, ()) else False
    return typer.Option(
        *(flags or (f"--{name.replace('_', '-')}",)), help=text[0].upper() + text[1:], show_default=shown
    )


def compare(
    context: typer.Context,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)] = None,
    methods: Annotated[str | None, _flag("methods", "--methods", "-m")] = None,
    per_class: Annotated[str | None, _flag("per_class", "--per-class", "-n")] = None,
    seeds: Annotated[str | None, _flag("seeds")] = None,
    output: Folder = Path("comparison"),
    recipe: Recipe = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of all methods that learn.", show_default="each method's own")
    ] = None,
    network: Annotated[str | None, _flag("network")] = None,
    experts: Annotated[str | None, _flag("experts")] = None,
    sampler: Annotated[str | None, _flag("sampler", "--sampler", "-s")] = None,
    draws: Annotated[int | None, _flag("draws")] = None,
    evaluations: Annotated[int | None, _flag("evaluations")] = None,
    baselines: Annotated[bool | None, _flag("baselines", "--baselines/--no-baselines")] = None,
    transfer: Annotated[str | None, _flag("transfer")] = None,
    target: Annotated[str | None, _flag("target")] = None,
    scaling: Annotated[str | None, _flag("scaling")] = None,
    val: Annotated[float | None, _flag("val")] = None,
    test_data: Annotated[str | None, _flag("test_data", "--test")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Runs at once.")] = 1,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="Where runs go (ray is an extra).")] = "local",
    device: Device = "cpu",
    *,
    chosen: Chosen,
) -> None:
    """Compare methods × sizes × seeds under one training budget: a table, a plot and a report.

    Every finished run is kept: the same command after an interruption runs only what is missing. With other methods,
    sizes or seeds the study grows: the results are always over all that the folder holds. A recipe may also give
    methods options of their own, and names of their own to several variants of one (benchmarks/recipes has some).
    Options given here take precedence over the recipe.
    """
    set_here = {name: value for name, value in context.params.items() if name in FIELDS and value is not None}
    spec = _spec(recipe, set_here, steps, chosen)
    place = device_of(device)
    with fetching() as note:
        split = spec.load_data(progress=note).to(place)
    with bar() as shown:
        steps_seen = workers == 1 and engine == "local"  # those of other processes cannot be followed
        observers = [partial(progress, shown=shown, description="  steps")] if steps_seen else []
        study = run_study(
            spec,
            split,
            output,
            command=command(),
            workers=workers,
            engine=engine,
            observers=observers,
            watch=following(shown),
        )
    present(study, output)
    _tell_earlier(study, spec, output)


def _spec(recipe: Path | None, flags: Mapping[str, Any], steps: int | None, chosen: Chosen) -> StudySpec:
    """The recipe's spec, or the default one, with what the flags say."""
    base = StudySpec() if recipe is None else StudySpec.read(recipe)
    changes = {name: words(value) if name in MANY else value for name, value in flags.items()}
    for name in ("per_class", "seeds"):
        if name in changes:
            changes[name] = numbers(flags[name], name.replace("_", "-"))
    if "data" in changes:
        changes = {"test_data": None, **changes}  # the recipe's belongs to the recipe's data
    changes["training"] = asdict(base.training) | chosen.training
    kept = base.sampler_options if changes.get("sampler", base.sampler) == base.sampler else {}
    changes["sampler_options"] = kept | chosen.options
    spec = base.changed(changes)
    if spec.data is None:
        raise AttarError("Say what to compare on, such as `attar compare digits --methods dm,dc`.")
    return spec if steps is None else spec.stepped(steps)


def present(study: Study, folder: Path) -> None:
    """Write the table, the plot and the report of a study, and print its figures."""
    write_text(folder / "table.csv", study.csv())
    write_text(folder / "accuracy.svg", accuracy_chart(study))
    out.print(score_table(study))
    if crossed := Crossings.load(folder):
        out.print(transfer_table(crossed))
        for problem in crossed.problems:
            err.print(f"warning: {problem}", style="yellow")
    for warning in leaks(rows(study)):
        err.print(f"warning: {warning}", style="yellow")
    out.print(f"report: {report(study, folder / 'report.html').resolve()}", soft_wrap=True)


def command() -> str:
    """The command line that runs now, as a shell takes it."""
    return shlex.join(["attar", *sys.argv[1:]])


def _tell_earlier(study: Study, spec: StudySpec, folder: Path) -> None:
    asked = {(job.method, job.per_class, job.seed) for job in grid(spec)}
    if before := {(run.method, run.per_class, run.seed) for run in study.runs} - asked:
        seeds = ", ".join(map(str, sorted({seed for *_, seed in before})))
        out.print(f"Runs of earlier calls in {folder} are in it too: {len(before)} (seeds {seeds}).", soft_wrap=True)
