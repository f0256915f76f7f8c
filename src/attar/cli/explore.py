"""`attar explore`: the page of a study in a browser, with the progress of runs that go on."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from attar.cli.arguments import Device
from attar.cli.console import bar, following, out, plain
from attar.report.explore import Explorer


def explore(
    source: Annotated[
        Path,
        typer.Argument(
            help="A folder of `attar compare`, `continual` or `nas`, the JSON file of one, or a coreset file.",
            metavar="FILE|FOLDER",
        ),
    ],
    port: Annotated[int, typer.Option(metavar="N", help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser, or only print its address.")
    ] = True,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="The data that a coreset or a study was made from.",
            show_default="the one named in FILE",
        ),
    ] = None,
    device: Device = "cpu",
) -> None:
    """Show the report of a study in a browser, also while `attar compare` is still running.

    The page is the one of `attar report`, served to this machine alone until Ctrl-C. It tells how far the runs are and
    offers new results as they come:

        attar compare digits --methods dm,dc --per-class 1,10 -o comparison &
        attar explore comparison

    A coreset file is evaluated first, like `attar report` does; its results are kept beside it.
    """
    if source.is_dir() or source.suffix == ".json":
        server = Explorer(source, port=port, data=data, device=device)
    else:
        with bar() as shown:  # a coreset is evaluated first
            server = Explorer(source, port=port, data=data, device=device, watch=following(shown))
    with server:
        out.print(f"{server.url} shows {plain(str(source))} until Ctrl-C.", soft_wrap=True)
        if browser:
            webbrowser.open(server.url)
        server.wait()
