"""`attar dedup`: duplicates of a data set, or of embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attar.cli.arguments import (
    Source,
    words,
)
from attar.cli.console import out, plain, warnings_shown, working
from attar.cli.loading import USUAL, Loading
from attar.cli.select_table import refuse
from attar.core.cost import measure
from attar.core.lock import claimed
from attar.data import Split
from attar.data.parts import InParts
from attar.select.dedup import dedup as find
from attar.select.dedup import require_ending
from attar.select.large import table_of

Distance = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="Largest Euclidean distance of near duplicates, in units of the features.",
        show_default="equal examples only",
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of a table with vectors, or several columns of numbers separated by commas.",
        show_default=False,
    ),
]
Id = Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="Column with keys.", show_default="row numbers")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write: .csv or .parquet.")]


def dedup(
    data: Source,
    distance: Distance = None,
    features: Features = None,
    id: Id = None,
    output: Output = Path("clusters.csv"),
    loading: Loading = USUAL,
) -> None:
    """Find equal and nearly equal examples, and keep one of each cluster.

    Equal examples of the training set of a data set:

        attar dedup digits
        attar dedup table.csv --target species

    Near duplicates among embeddings in a table, with the key of each row:

        attar dedup 'rows/*.parquet' --features emb --id key --distance 0.1

    The file has a row for every example: its key, the key of the example that its cluster keeps (the first one), and
    whether it is kept itself. Near examples are linked if they are not farther apart than the distance, and a cluster
    is all that a chain of links joins. Of more than 4,096 examples the neighbours are approximate, and some links are
    missed (`pip install 'attar[ann]'`). Features are held in memory.
    """
    require_ending(output)
    given: InParts | Split | None = table_of(data, words(features) if features else None, None, id)
    if given is None:
        given = loading.read(data)
    else:
        refuse(vars(loading))
    with claimed(output):
        with working("looking for duplicates"), warnings_shown(), measure() as cost:
            found = find(given, distance=distance)
        found.save(output)
    sizes = found.sizes
    out.print(
        f"{len(found.kept):,} of {len(found.clusters):,} examples of {plain(data)} are kept: {found.exact:,} equal an "
        f"earlier one, {found.near:,} are near one; in {cost.wall:.1f} s → {output}",
        soft_wrap=True,
        highlight=False,
    )
    if sizes:
        shown = ", ".join(f"{size:,}" for size in sizes[:10])
        rest = f" and {len(sizes) - 10:,} more" if len(sizes) > 10 else ""
        clusters = "1 cluster" if len(sizes) == 1 else f"{len(sizes):,} clusters"
        out.print(f"{clusters} of several examples, with {shown}{rest}", soft_wrap=True, highlight=False)
