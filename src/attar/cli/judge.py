"""Commands that judge: compare, report, demo."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Annotated, Any, Literal

import typer
from rich.progress import Progress

from attar.assess.questions import Assessment
from attar.cli.arguments import (
    DATA_HELP,
    Draws,
    Evaluations,
    Experts,
    Folder,
    NetworkName,
    OwnSampler,
    Recipe,
    Scaling,
    Target,
    first,
    numbers,
    read,
    words,
)
from attar.cli.console import bar, err, out, progress, score_table, transfer_table
from attar.cli.options import Chosen, read_study
from attar.core import registry
from attar.core.errors import AttarError
from attar.core.files import write_text
from attar.coreset import Coreset
from attar.data import Split
from attar.nets import default
from attar.nets.names import canonical, parse
from attar.nets.train import Training
from attar.report import accuracy_chart
from attar.report import write as write_report
from attar.report.rows import rows
from attar.report.words import leaks
from attar.study import Run, Study
from attar.study.cross import Crossings, cross
from attar.study.runner import Job, Setting, carry_out, grid, judge


def compare(
    data: Annotated[str | None, typer.Argument(help=DATA_HELP, metavar="DATA", show_default=False)] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", "-m", help="Methods, separated by commas.", show_default="dm,dc")
    ] = None,
    per_class: Annotated[
        str | None, typer.Option("--per-class", "-n", help="Sizes, separated by commas.", show_default="1,10")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="Seeds by commas; figures are mean ± standard error over them.", show_default="0,1,2"),
    ] = None,
    output: Folder = Path("comparison"),
    recipe: Recipe = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of methods that learn.", show_default="own")] = None,
    network: NetworkName = None,
    experts: Experts = None,
    sampler: OwnSampler = None,
    draws: Annotated[
        int | None, typer.Option(min=1, help="Networks whose predictions are averaged.", show_default="3")
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option(min=1, help="Posteriors for each coreset, each from its own seed.", show_default="1")
    ] = None,
    baselines: Annotated[bool, typer.Option(help="Add random subset, herding and full data.")] = True,
    transfer: Annotated[
        str | None, typer.Option(help="Other networks to train on every coreset, by commas.", show_default=False)
    ] = None,
    scaling: Annotated[
        str | None, typer.Option(help="How examples are scaled: standard, zca or none.", show_default="standard")
    ] = None,
    target: Target = None,
    workers: Annotated[int, typer.Option(min=1, help="Runs at once.")] = 1,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="Where runs go (ray is an extra).")] = "local",
    *,
    chosen: Chosen,
) -> None:
    """Compare methods × sizes × seeds under one training budget: a table, a plot and a report.

    Every finished run is kept: the same command after an interruption runs only what is missing. With other methods,
    sizes or seeds the study grows: the results are always over all that the folder holds. A recipe may also give
    methods options of their own, and names of their own to several variants of one (benchmarks/recipes has some).
    """
    file = read_study(recipe)
    source = data or file.data
    if source is None:
        raise AttarError("Say what to compare on, such as `attar compare digits --methods dm,dc`.")
    names = words(methods) if methods else file.methods or ["dm", "dc"]
    sizes = numbers(per_class, "per-class") if per_class else file.per_class or [1, 10]
    others = [canonical(*parse(name)) for name in (words(transfer) if transfer else file.transfer or [])]
    jobs = grid(names, sizes, numbers(seeds, "seeds") if seeds else file.seeds or [0, 1, 2], baselines, file.variants)
    split = read(source, first(scaling, file.scaling, "standard"), target)
    setting = replace(
        _setting(split, output, jobs, first(draws, file.draws, 3), None, network or file.network),
        training=registry.make(Training, file.training | chosen.training, "training"),
        sampler=sampler or file.sampler,
        sampler_options=file.sampler_options | chosen.options,
        evaluations=first(evaluations, file.evaluations, 1),
        options=file.options,
        descent=_steps(jobs, steps, file.variants, file.descent),
        variants=file.variants,
        experts=str(experts or file.experts or "") or None,
    )
    with bar() as shown:
        if workers == 1 and engine == "local":  # elsewhere nobody would see the steps
            setting = setting.watched(partial(progress, shown=shown, description="  steps"))
        study = carry_out(setting, jobs, _command(), workers, engine, _watch(shown, len(jobs)))
        if others:
            task = shown.add_task("transfers", total=None)
            tell = partial(shown.update, task)
            cross(study, split, output, others, workers=workers, where=engine, watch=lambda line: tell(note=line))
    _present(study, output)
    asked = {(job.method, job.per_class, job.seed) for job in jobs}
    if before := {(run.method, run.per_class, run.seed) for run in study.runs} - asked:
        seeds_before = ", ".join(map(str, sorted({seed for *_, seed in before})))
        out.print(
            f"Runs of earlier calls in {output} are in it too: {len(before)} (seeds {seeds_before}).", soft_wrap=True
        )


def report(
    source: Annotated[Path, typer.Argument(help="A coreset, or a study made by `attar compare`.", metavar="FILE")],
    data: Annotated[
        str | None, typer.Option(help="The data set of a coreset, if not the one it names.", show_default=False)
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("report.html"),
    answers: Annotated[
        list[Path] | None,
        typer.Option("--answers", "-a", help="What `attar evaluate -o` wrote; may be repeated.", show_default=False),
    ] = None,
    evaluations: Evaluations = 3,
    draws: Draws = 3,
    scaling: Scaling = "standard",
    target: Target = None,
) -> None:
    """Write a page a person can look at: one HTML file that needs no network.

    A coreset is evaluated first, beside a random subset, herding and the full data at the same training budget. What
    `attar evaluate` was asked beyond scores comes onto the page with --answers.
    """
    asked = [Assessment.load(path) for path in answers or ()]
    study_file = source / "study.json" if source.is_dir() else source
    if study_file.suffix == ".json":
        study, folder = Study.load(study_file), study_file.parent
    else:
        split = read(data or Coreset.load(source).recipe.data, scaling, target)
        folder = output.with_name(output.stem + "-files") / Coreset.load(source).data.fingerprint[:12]
        with bar() as shown:
            watch = _watch(shown, None)
            study = judge(
                split, source, folder=folder, evaluations=evaluations, draws=draws, command=_command(), watch=watch
            )
        out.print(score_table(study))
    out.print(f"report: {write_report(study, folder, output, asked).resolve()}", soft_wrap=True)


def demo(output: Folder = Path("demo")) -> None:
    """Reduce the embedded digits to ten examples with four methods, and write the report: a minute or two."""
    jobs = grid(["dm", "dc"], [1], [0, 1, 2])
    setting = replace(_setting(read("digits"), output, jobs, draws=3, steps=100), training=Training(batch=64))
    with bar() as shown:
        study = carry_out(setting, jobs, _command(), workers=2, watch=_watch(shown, len(jobs)))
    out.print(verdict(study))
    _present(study, output)


def verdict(study: Study) -> str:
    """The demo in a sentence: the test accuracy of the learnt digits that did best on validation, and of others."""
    reached = {m: mean(run.test.accuracy for run in runs) for (m, _), runs in study.groups().items()}
    seen = {m: mean(run.validation.accuracy for run in runs) for (m, _), runs in study.groups().items()}
    best = max(("dm", "dc"), key=seen.__getitem__)  # test is only read
    return (
        f"Ten learnt digits ({best}) tell {reached[best]:.0%} of unseen digits right, ten random ones "
        f"{reached['uniform']:.0%}, all {study.data['train']:,} training digits {reached['full']:.0%}."
    )


def _setting(
    split: Split, folder: Path, jobs: Sequence[Job], draws: int, steps: int | None = None, network: str | None = None
) -> Setting:
    return Setting(split, folder, network or default(split.spec), Training(), draws, descent=_steps(jobs, steps))


def _steps(
    jobs: Sequence[Job],
    steps: int | None,
    variants: Mapping[str, str] | None = None,
    descent: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Mapping[str, Any]]:
    """How methods that learn walk down, with the number of steps for all of them if one was set."""
    given = dict(descent or {})
    names = {job.method for job in jobs if job.per_class} if steps else set()
    learning = [name for name in names if registry.find((variants or {}).get(name, name)).family != "select"]
    return given | {name: {**given.get(name, {}), "steps": steps} for name in sorted(learning)}


def _present(study: Study, folder: Path) -> None:
    write_text(folder / "table.csv", study.csv())
    write_text(folder / "accuracy.svg", accuracy_chart(study))
    out.print(score_table(study))
    if crossed := Crossings.load(folder):
        out.print(transfer_table(crossed))
        for problem in crossed.problems:
            err.print(f"warning: {problem}", style="yellow")
    for warning in leaks(rows(study)):
        err.print(f"warning: {warning}", style="yellow")
    out.print(f"report: {write_report(study, folder, folder / 'report.html').resolve()}", soft_wrap=True)


def _watch(shown: Progress, total: int | None) -> Callable[[Job, list[Run]], None]:
    task = shown.add_task("runs", total=total)

    def watch(job: Job, runs: list[Run]) -> None:
        shown.update(task, advance=1, note=f"{job.key}: {runs[0].validation.accuracy:.1%} on validation")

    return watch


def _command() -> str:
    return shlex.join(["attar", *sys.argv[1:]])
