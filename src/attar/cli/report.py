"""`attar report`: the HTML report of a study or a coreset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attar.cli.arguments import DRAWS, Device, Draws, Evaluations
from attar.cli.console import bar, command, following, out, warnings_shown
from attar.cli.loading import Target, TestFile
from attar.cli.origin import data_of
from attar.cli.tables import cost_table, score_table
from attar.core.device import device_of
from attar.core.lock import claimed
from attar.coreset import Coreset
from attar.data import Split
from attar.report import report as write_report
from attar.report.make import files_of, opened
from attar.study import Study
from attar.study.runner import study_coreset


def report(
    source: Annotated[
        Path,
        typer.Argument(help="A coreset file, or a folder of `attar compare`, `continual` or `nas`.", metavar="FILE"),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="The data that a coreset or a study was made from.",
            show_default="the one named in FILE",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")] = Path(
        "report.html"
    ),
    answers: Annotated[
        list[Path] | None,
        typer.Option(
            "--answers", "-a", metavar="FILE", help="File of `attar evaluate -o`; may be repeated.", show_default=False
        ),
    ] = None,
    evaluations: Evaluations = 3,
    draws: Draws = DRAWS,
    converged: Annotated[
        bool,
        typer.Option(
            "--converged/--no-converged",
            help="For a coreset, also train the full data to convergence, with steps chosen on validation.",
        ),
    ] = True,
    device: Device = "cpu",
    target: Target = None,
    test: TestFile = None,
) -> None:
    """Write the HTML report of a study or a coreset: one self-contained file.

    A coreset is evaluated first, together with a random subset, herding and the full data, with the same training, and
    the full data trained to convergence, which takes long for large data but is kept for other reports and studies:

        attar report comparison -o comparison.html
        attar report d.safetensors -o d.html

    Give the files of `attar evaluate -o` with --answers to show its further answers on the page.
    """
    with claimed(output):
        _report(source, output, data, answers or [], evaluations, draws, converged, device, target, test)


def _report(
    source: Path,
    output: Path,
    data: str | None,
    answers: list[Path],
    evaluations: int,
    draws: int,
    converged: bool,
    device: str,
    target: str | None,
    test: str | None,
) -> None:
    with warnings_shown():
        found, given = opened(source), None
    if isinstance(found, Coreset):
        place = device_of(device)
        spec, origin = found.data.spec, found.recipe.origin
        split = data_of(source, spec, origin, data, "--data", test=test, target=target).to(place)
        given = split
        found = _evaluated(found, split, files_of(found, output), evaluations, draws, converged)
        out.print(score_table(found))
        out.print(cost_table(found))
    page = write_report(found, output, data=given or data, answers=answers)
    out.print(f"report: {page.resolve()}", soft_wrap=True)


def _evaluated(coreset: Coreset, split: Split, folder: Path, evaluations: int, draws: int, converged: bool) -> Study:
    with bar() as shown:
        return study_coreset(
            coreset,
            split,
            folder,
            evaluations=evaluations,
            draws=draws,
            converged=converged,
            command=command(),
            watch=following(shown),
        )
