"""The part of `attar select` for tables that are read in parts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from attar.cli.arguments import TABLE
from attar.cli.console import bar, err, out, plain, warnings_shown, working
from attar.core import registry
from attar.core.budget import shown
from attar.core.cost import measure
from attar.core.errors import AttarError
from attar.core.lock import claimed
from attar.core.signals import Interrupted
from attar.core.text import duration
from attar.data.cooccurrence import LEARNT
from attar.data.data import count_in_words
from attar.data.parts import InParts
from attar.data.split import Reading
from attar.engine import Engine
from attar.nets.train import Training
from attar.select import large
from attar.select.contract import Selector
from attar.select.large.store import request

Features = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Read DATA in parts; its examples are this column: lists of numbers, image bytes or texts (or several "
        "columns of numbers, separated by commas).",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the classes; a .npy file for DATA in .npy.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column with the keys, which name the picks.",
        show_default="row numbers",
        rich_help_panel=TABLE,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory that each process may take; parts are made small enough.",
        show_default="2GB",
        rich_help_panel=TABLE,
    ),
]


def select_table(
    table: InParts,
    method: Selector,
    budget: Mapping[str, Any],
    output: Path,
    *,
    network: str | None,
    training: Training,
    seed: int,
    memory: str | None,
    vectors: str | None,
    length: int | None,
    engine: Engine,
    dry_run: bool,
) -> None:
    """Print the forecast, select, check the forecast and write the picks; finished parts are kept beside the output."""
    name, folder = registry.entry_of(method).name, output.with_name(f"{output.name}.parts")
    reading = Reading(length, vectors if vectors in (None, LEARNT) else Path(str(vectors)).expanduser())
    with warnings_shown(), working("reading labels and keys"):
        plan = large.plan(
            table,
            method,
            **budget,
            memory=memory,
            network=network,
            training=training,
            seed=seed,
            reading=reading,
            folder=None if dry_run else folder,
        )
    with warnings_shown(), working("timing a part"):
        seconds = plan.seconds(engine.workers)
    out.print(plain(plan.describe()), soft_wrap=True, highlight=False)
    out.print(
        f"forecast: {shown(plan.forecast)} of memory in each process ({shown(plan.memory)} allowed), "
        f"about {duration(seconds)}",
        soft_wrap=True,
        highlight=False,
    )
    if dry_run:
        return
    with claimed(output):
        with bar() as progress, warnings_shown(), measure() as cost, _kept(folder):
            task = progress.add_task(f"{name}: selecting", total=plan.parts)
            picked, most = large.run(
                plan,
                folder,
                engine=engine,
                watch=lambda done, total: progress.update(task, completed=done, total=total),
            )
        picked.save(output, None, request(plan))
        shutil.rmtree(folder)
    peak, taken = max(cost.memory, most), plan.surveyed + cost.wall
    counted = count_in_words(picked.weights)
    out.print(
        f"{len(picked.indices):,} of {plan.rows:,} rows of {plain(table.where)} by {name} in {taken:.1f} s, "
        f"peak memory {shown(peak)} ({shown(plan.forecast)} forecast){counted and f', {counted}'} → {output}",
        soft_wrap=True,
        highlight=False,
    )
    if peak > plan.memory:
        err.print(
            f"warning: the peak of {shown(peak)} is more than the {shown(plan.memory)} allowed: ask for smaller parts.",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )


@contextmanager
def _kept(folder: Path) -> Iterator[None]:
    """When a signal ends the work, say where its finished parts are."""
    try:
        yield
    except Interrupted as stop:
        raise Interrupted(stop.number, f"Stopped; finished parts are kept in {folder}.") from stop


def refuse(given: Mapping[str, object]) -> None:
    """Raise if an option is given that a table in parts does not have."""
    for name, value in given.items():
        if value is not None:
            raise AttarError(f"A table that is read in parts has no --{name}: leave it out.")
