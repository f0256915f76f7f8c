"""`attar export`: a coreset for other programs."""

from __future__ import annotations

from typing import Annotated

import typer

from attar.cli.arguments import CoresetPath
from attar.cli.console import out, warnings_shown
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.export import export as write
from attar.export import push_to_hub

HUB = "hf:"

Output = Annotated[
    str,
    typer.Argument(
        help="File or folder to write, whose suffix gives the format, or hf:owner/name for the Hugging Face hub.",
        metavar="PATH",
        show_default=False,
    ),
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
DryRun = Annotated[bool, typer.Option("--dry-run", help="With hf: ask the hub and show the card, but write nothing.")]
Public = Annotated[bool, typer.Option("--public", help="With hf: make a new data set public, not private.")]


def export(
    coreset: CoresetPath, output: Output, kind: Kind = None, dry_run: DryRun = False, public: Public = False
) -> None:
    """Write a coreset for other programs.

    Values are in the units of the original data:

        attar export d.safetensors d.npz
        attar export d.safetensors images --kind folder
        attar export d.safetensors hf:owner/name --dry-run
    """
    repo = output.removeprefix(HUB)
    if repo == output and (dry_run or public):
        raise AttarError(f"--dry-run and --public are for the hub: write {HUB}owner/name instead of {output}.")
    with warnings_shown():
        if repo == output:
            out.print(f"wrote {write(Coreset.load(coreset, force=True), output, kind)}", soft_wrap=True)
            return
        if kind not in (None, "hf"):
            raise AttarError(f"The hub takes the kind hf, not {kind}: leave --kind out.")
        pushed = push_to_hub(Coreset.load(coreset, force=True), repo, private=not public, dry_run=dry_run)
    if dry_run:
        out.print(pushed.card, soft_wrap=True, markup=False)
    for name, size in pushed.files.items():
        out.print(f"{size:>12,} bytes  {name}", soft_wrap=True)
    done = f"{'would go' if dry_run else 'went'} to {pushed.url}"
    out.print(f"{done} ({'which exists' if pushed.exists else 'which is new'})", soft_wrap=True)
