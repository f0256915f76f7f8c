"""`attar export`: a coreset for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attar.cli.arguments import CoresetPath
from attar.cli.console import out, warnings_shown
from attar.coreset import Coreset
from attar.export import export as write

Output = Annotated[
    Path,
    typer.Argument(help="File or folder to write; its suffix gives the format.", metavar="PATH", show_default=False),
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Format, if the suffix does not give it: npz (arrays), parquet (a table), csv (rows, labels and weights), "
        "png (a contact sheet), folder (images by class) or hf (a Hugging Face data set).",
        show_default=False,
    ),
]


def export(coreset: CoresetPath, output: Output, kind: Kind = None) -> None:
    """Write a coreset for other programs.

    Values are in the units of the original data:

        attar export d.safetensors d.npz
        attar export d.safetensors images --kind folder
    """
    with warnings_shown():
        written = write(Coreset.load(coreset, force=True), output, kind)
    out.print(f"wrote {written}", soft_wrap=True)
