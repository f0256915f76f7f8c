"""`attar show`: the examples of a coreset in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from attar.cli.arguments import CoresetPath
from attar.cli.console import out, plain
from attar.core.errors import AttarError
from attar.core.files import atomic
from attar.coreset import Coreset
from attar.data.spec import Tokens, Vector
from attar.report import contact_sheet
from attar.report.gallery import weights
from attar.report.images import GAP, is_image, strip
from attar.report.terminal import ansi

ACROSS = 4  #: images per line at least; larger ones are shrunk
CELL = 20  #: characters of a value at most
PADDING = 3  #: characters between two columns

Png = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also write all images on one contact sheet.", show_default=False),
]
Columns = Annotated[int, typer.Option(min=1, metavar="N", help="Examples of each class to show.")]


def show(coreset: CoresetPath, png: Png = None, columns: Columns = 10) -> None:
    """Show the examples of a coreset, class by class.

    Images are drawn in colour in a terminal, and listed by row elsewhere; tables show their columns, texts their words:

        attar show d.safetensors
        attar show d.safetensors --png d.png
    """
    loaded = Coreset.load(coreset, force=True)
    recipe, spec = loaded.recipe, loaded.data.spec
    made = f"{plain(spec.name)} by {plain(recipe.method)}, {plain(recipe.amount)}, seed {recipe.seed}"
    out.print(f"{len(loaded)} examples of {made}", soft_wrap=True)
    for note in weights(loaded):
        out.print(note)
    pictures = is_image(spec.element)
    if png and not pictures:
        raise AttarError("These examples are not images: leave out --png.")
    if isinstance(spec.element, Vector):
        _rows(loaded, columns)
    elif isinstance(spec.element, Tokens):
        _texts(loaded, spec.element, columns)
    elif pictures and out.is_terminal:
        _images(loaded, columns)
    else:
        _counts(loaded)
    if png:
        with atomic(png) as part:
            contact_sheet(loaded.pixels(), loaded.data.hard, spec.target.names).save(part, "PNG")
        out.print(f"→ {png}", soft_wrap=True)


def _images(coreset: Coreset, columns: int) -> None:
    """A strip of images per class, wrapped between images; large ones are shrunk."""
    for name, chosen in _by_class(coreset, columns):
        pixels = coreset.data.spec.stored(coreset.data.x[chosen]).float()
        largest = max(1, (out.width + GAP) // ACROSS - GAP)
        height, width = pixels.shape[-2:]
        if width > largest:
            pixels = adaptive_avg_pool2d(pixels, (max(1, height * largest // width), largest))
        fit = max(1, (out.width + GAP) // (pixels.shape[-1] + GAP))
        out.print(name, style="bold")
        out.print(ansi(strip(pixels, columns=min(fit, len(pixels)), scale=1)))


def _rows(coreset: Coreset, columns: int) -> None:
    """One line per example, with as many columns as fit."""
    groups = _by_class(coreset, columns)
    values = {plain(name): [_cell(value) for value in column] for name, column in coreset.values().items()}
    lines = [[name, k] for name, chosen in groups for k in chosen.tolist()]
    used: list[str] = []
    left = out.width - PADDING - min(CELL, max(len(name) for name, _ in groups))
    for name, cells in values.items():
        left -= PADDING + min(CELL, max(len(name), *(len(cells[k]) for _, k in lines)))
        if left < 0 and used:
            break
        used.append(name)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("class", *used):
        table.add_column(_short(name), no_wrap=True)
    for name, k in lines:
        table.add_row(_short(name), *(_short(values[column][k]) for column in used))
    out.print(table)
    if len(used) < len(values):
        out.print(f"{len(values) - len(used)} more of {len(values)} columns: `attar export` writes them all.")


def _cell(value: object) -> str:
    """A value as a person writes it; a missing one is empty."""
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else plain(str(value))


def _short(text: str) -> str:
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


def _texts(coreset: Coreset, element: Tokens, columns: int) -> None:
    """The words of each example."""
    for name, chosen in _by_class(coreset, columns):
        out.print(name, style="bold")
        for tokens in coreset.data.spec.stored(coreset.data.x[chosen]).tolist():
            out.print(Padding(Text(plain(element.text(tokens))), (0, 0, 0, 2), expand=False))


def _counts(coreset: Coreset) -> None:
    """The number of examples per class, and their rows if they were selected."""
    table = Table("class", "examples", box=SIMPLE_HEAD)
    rows = coreset.rows
    if rows is not None:
        table.add_column("rows")
    for name, chosen in _by_class(coreset, len(coreset)):
        kept = chosen.tolist()
        which = [] if rows is None else [", ".join(plain(str(rows[place])) for place in kept)]
        table.add_row(name, str(len(kept)), *which)
    out.print(table)


def _by_class(coreset: Coreset, most: int) -> list[tuple[str, Tensor]]:
    """The printable name of each class and the positions of its first examples, for classes that have any."""
    labels = coreset.data.hard
    found = [(plain(n), (labels == c).nonzero().flatten()) for c, n in enumerate(coreset.data.spec.target.names)]
    return [(name, places[:most]) for name, places in found if len(places)]
