"""Commands that show what there is: methods, show."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic.fields import FieldInfo
from rich.table import Table
from rich.text import Text

from attar.cli.arguments import CoresetPath
from attar.cli.console import out
from attar.cli.options import describe
from attar.condense.contract import Descent
from attar.core import registry
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.report import contact_sheet
from attar.report.gallery import weights
from attar.report.images import is_image, strip
from attar.report.terminal import ansi


def methods(
    name: Annotated[str | None, typer.Argument(help="A method, to see its options.", show_default=False)] = None,
) -> None:
    """List what there is: name, family, what it learns, what drives its cost, and the paper."""
    if name is not None:
        _one(registry.find(name))
        return
    table = Table("name", "family", "learns", "cost", "paper", show_lines=True)
    for entry in sorted(registry.methods().values(), key=lambda e: (e.family, e.name)):
        table.add_row(Text(entry.name, "bold"), entry.family, entry.learns, entry.cost, entry.paper)
    out.print(table)
    out.print("`attar methods NAME` shows the equation and the options of one.", style="dim")


def show(
    coreset: CoresetPath,
    png: Annotated[Path | None, typer.Option(help="Also write a contact sheet here.", show_default=False)] = None,
    columns: Annotated[int, typer.Option(min=1, help="Examples of a class to show in the terminal.")] = 10,
) -> None:
    """Show the examples of a coreset, class by class, in the terminal and as PNG."""
    loaded = Coreset.load(coreset)
    recipe, spec = loaded.recipe, loaded.data.spec
    size = f"{recipe.per_class} per class"
    out.print(f"{len(loaded)} examples of {spec.name} by {recipe.method}, {size}, seed {recipe.seed}", markup=False)
    for note in weights(loaded):
        out.print(note)
    if not is_image(loaded.data.shape):
        if png:
            raise AttarError("These examples are feature vectors, not images: leave out --png.")
        _features(loaded)
        return
    pixels, labels = loaded.pixels(), loaded.data.hard
    for c, name in enumerate(spec.target.names):
        of_class = pixels[labels == c][:columns]
        if len(of_class):
            out.print(name, style="bold", markup=False)
            out.print(ansi(strip(of_class, columns=len(of_class), scale=1)))
    if png:
        contact_sheet(pixels, labels, spec.target.names).save(png)
        out.print(f"→ {png}")


def _one(entry: registry.Entry) -> None:
    out.print(entry.name, style="bold", end="")
    out.print(f" ({entry.family}) learns {entry.learns}\n{entry.paper}\ncost: {entry.cost}\n")
    out.print(inspect.cleandoc(entry.build.__doc__ or ""), markup=False)
    table = Table("option", "type and range", "default", "what it is")
    for name, info, default in _options(entry.build):
        shown = "" if default is None else str(default)
        table.add_row(f"--{name.replace('_', '-')}", describe(info), shown, info.description or "")
    out.print(table if table.rows else "No options.")


def _options(method: type) -> Iterator[tuple[str, FieldInfo, object]]:
    for name, info in registry.fields(method).items():
        yield name, info, info.default
    usual = getattr(method, "descent", None)
    if isinstance(usual, Descent):
        for name, info in registry.fields(Descent).items():
            yield name, info, getattr(usual, name)


def _features(coreset: Coreset) -> None:
    table = Table("class", *[f"x{k}" for k in range(min(8, coreset.data.shape[0]))])
    for row, label in zip(coreset.pixels().tolist(), coreset.data.hard.tolist(), strict=True):
        table.add_row(Text(coreset.data.spec.target.names[label]), *[f"{value:.3g}" for value in row[:8]])
    out.print(table)
