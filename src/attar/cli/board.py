"""`attar board`: the board as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attar.cli.console import out
from attar.report.board import board as write_board

Folder = Annotated[Path, typer.Argument(help="Folder of the board.", metavar="RESULTS")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")]


def board(results: Folder = Path("results"), output: Output = Path("board.html")) -> None:
    """Write the board as one self-contained HTML page: sort, filter, gain over random, accuracy against cost.

    No data is needed for that, only the files of the board:

        attar board results -o board.html

    The page has the rules of admission. A score that was edited by hand, or judged by another version of a problem, is
    refused; `attar submit` adds a row.
    """
    out.print(f"board: {write_board(results, output).resolve()}", soft_wrap=True)
