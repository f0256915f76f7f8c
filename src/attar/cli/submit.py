"""`attar submit`: judge anyone's coreset on a problem of the board."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attar.board import submit as judge
from attar.cli.arguments import Device
from attar.cli.console import err, fetching, out, plain, warnings_shown
from attar.study.grid import Progress

Files = Annotated[
    list[Path],
    typer.Argument(help="Coreset files of one method and size, one per seed.", metavar="FILE", show_default=False),
]
ProblemName = Annotated[
    str | None,
    typer.Option(
        "--problem", "-p", metavar="NAME", help="Problem to judge it on.", show_default="the only one that fits"
    ),
]
Folder = Annotated[Path, typer.Option("--results", metavar="FOLDER", help="Folder of the board.")]
Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of its row on the board.", show_default="the method")
]
Times = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Posteriors of each coreset.",
        show_default="1, and the problem's number for a single coreset",
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace a score of the same name and size.")]


def submit(
    files: Files,
    problem: ProblemName = None,
    results: Folder = Path("results"),
    name: Name = None,
    evaluations: Times = None,
    replace: Replace = False,
    device: Device = "cpu",
) -> None:
    """Evaluate a coreset on a problem of the board, and write its score.

    All coresets are evaluated alike: the problem gives the data, the network, the training steps and the protocol, and
    the test set is read once for each posterior:

        attar submit dm-0.safetensors dm-1.safetensors --problem digits
        attar submit rfad.safetensors --problem cifar10-zca --name rfad

    Several files are coresets of one method and size, each made with its own seed. A random subset of the same size is
    evaluated first if the board has none. The score is a JSON file in the folder scores of the board, with a checksum;
    `attar board` shows all of them. For a set that was made elsewhere, see `attar import`.
    """
    with fetching() as note, warnings_shown():
        found = judge(
            files,
            problem=problem,
            results=results,
            name=name,
            evaluations=evaluations,
            replace=replace,
            device=device,
            progress=note,
            watch=_tell,
        )
    out.print(plain(str(found)), soft_wrap=True, highlight=False)
    out.print(f"→ {results / 'scores' / found.key}.json", soft_wrap=True, highlight=False)


def _tell(part: Progress) -> None:
    err.print(plain(f"{part.done} of {part.total}: {part.line}"), soft_wrap=True, highlight=False)
