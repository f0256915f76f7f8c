"""`attar report`: the page of a study or of a coreset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attar.cli.arguments import DRAWS, Device, Draws, Evaluations, Target, TestFile
from attar.cli.compare import command
from attar.cli.console import bar, following, out, score_table
from attar.cli.origin import data_of
from attar.core.device import device_of
from attar.coreset import Coreset
from attar.data import Split
from attar.report import report as write_report
from attar.report.make import files_of, opened
from attar.study import Study
from attar.study.runner import study_coreset


def report(
    source: Annotated[Path, typer.Argument(help="A coreset, or a study made by `attar compare`.", metavar="FILE")],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="The data set that a coreset was made from.", show_default="the one that FILE names"
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("report.html"),
    answers: Annotated[
        list[Path] | None,
        typer.Option("--answers", "-a", help="What `attar evaluate -o` wrote; may be repeated.", show_default=False),
    ] = None,
    evaluations: Evaluations = 3,
    draws: Draws = DRAWS,
    device: Device = "cpu",
    target: Target = None,
    test: TestFile = None,
) -> None:
    """Write a page a person can look at: one HTML file that needs no network.

    A coreset is evaluated first, beside a random subset, herding and the full data at the same training budget, on the
    data that it was made from, scaled as it was. What `attar evaluate` was asked beyond scores comes onto the page with
    --answers.
    """
    found = opened(source)
    if isinstance(found, Coreset):
        place = device_of(device)
        spec, origin = found.data.spec, found.recipe.origin
        split = data_of(source, spec, origin, data, "--data", test=test, target=target).to(place)
        found = _evaluated(found, split, files_of(found, output), evaluations, draws)
        out.print(score_table(found))
    out.print(f"report: {write_report(found, output, answers=answers or ()).resolve()}", soft_wrap=True)


def _evaluated(coreset: Coreset, split: Split, folder: Path, evaluations: int, draws: int) -> Study:
    with bar() as shown:
        return study_coreset(
            coreset,
            split,
            folder,
            evaluations=evaluations,
            draws=draws,
            command=command(),
            watch=following(shown),
        )
