"""`attar select`: which examples of a data set, or of embeddings, to keep."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor

from attar.cli.arguments import (
    BUDGET,
    Device,
    Fraction,
    MethodName,
    NetworkName,
    OptionalSource,
    PerClass,
    Seed,
    words,
)
from attar.cli.arguments import budget as budget_option
from attar.cli.console import out, plain, print_forecast, warnings_shown, working
from attar.cli.loading import USUAL, Loading
from attar.cli.options import Chosen
from attar.cli.select_table import (
    Features,
    Id,
    Label,
    Memory,
    refuse,
    select_table,
)
from attar.core import registry
from attar.core.cost import measure
from attar.core.device import device_of
from attar.core.errors import AttarError
from attar.core.lock import claimed
from attar.data import Data, Split
from attar.data.data import count_in_words
from attar.data.mapped import open_array
from attar.engine.pool import LOCAL, Engine
from attar.nets import default
from attar.nets.train import Training
from attar.select.contract import Selector, require_ending
from attar.select.large import table_of
from attar.select.run import decide

GIVEN = "Embeddings, instead of DATA"

Size = Annotated[
    int | None, typer.Option(metavar="N", help="Examples in all.", show_default=False, rich_help_panel=BUDGET)
]
Budget = Annotated[str | None, budget_option("balanced with --per-class, else classes are ignored")]
Balanced = Annotated[
    bool | None,
    typer.Option(
        "--balanced/--no-balanced",
        help="Divide a size or fraction among the classes equally, or in proportion to their sizes.",
        show_default="not divided",
        rich_help_panel=BUDGET,
    ),
]
Embeddings = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="A .npy file with one row per example.", show_default=False, rich_help_panel=GIVEN
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A .npy file with the class of each row, as whole numbers from 0.",
        show_default=False,
        rich_help_panel=GIVEN,
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="File to write: .csv, .parquet, .npz or .safetensors.")
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print estimated memory and time, with the parts of a table, and stop."),
]
Part = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Two-stage (MapReduce) selection, for very many examples: from parts of N, then from all picks.",
        show_default="all at once",
    ),
]


def select(
    data: OptionalSource = None,
    method: MethodName = None,
    size: Size = None,
    fraction: Fraction = None,
    per_class: PerClass = None,
    balanced: Balanced = None,
    budget: Budget = None,
    embeddings: Embeddings = None,
    labels: Labels = None,
    output: Output = Path("picks.csv"),
    part: Part = None,
    seed: Seed = 0,
    network: NetworkName = None,
    device: Device = "cpu",
    loading: Loading = USUAL,
    features: Features = None,
    label: Label = None,
    id: Id = None,
    memory: Memory = None,
    engine: Engine = LOCAL,
    dry_run: DryRun = False,
    *,
    chosen: Chosen,
) -> None:
    """List which examples of a data set to keep, with score, class and weight.

    One percent of the images, equally many of each class, with a briefly trained scoring network:

        attar select fashion-mnist --method herding --fraction 0.01 --balanced

    A thousand rows of embeddings of any model, without labels, in linear time:

        attar select --embeddings clip.npy -m k-center --size 1000 --part 4096

    One percent of a table that does not fit into memory, read in parts (Parquet, Arrow, .npy; local or a URL); --label
    and --id name its columns of labels and keys:

        attar select 'rows/*.parquet' --features emb -m k-center --fraction 0.01

    Selections are nested: the first picks (of each class, if classes are balanced) are the selection of a smaller size.
    `row` is the number or name of the example in your file; `index` is its position in the training set after
    validation and test examples are held out. Methods without weights give each pick weight 1. Methods that use
    predictions need labels; those named -val need DATA. Name a method to see its options too: `attar select -m lcmat-s
    --help`. For a file that can be trained on, use `attar reduce`.
    """
    require_ending(output)
    if method is None:
        raise AttarError("Give a method, such as `attar select digits --method herding --per-class 10`.")
    built = registry.build(method, chosen.options, "select")
    training: Training = registry.make(Training, chosen.training, "training")
    if (data is None) == (embeddings is None):
        raise AttarError("Give what to select from: either DATA, such as digits, or --embeddings FILE.npy.")
    amount: dict[str, Any] = {"size": size, "fraction": fraction, "per_class": per_class}
    amount |= {"balanced": balanced, "budget": budget, "part": part}
    table = None if data is None else table_of(data, words(features) if features else None, label, id)
    if table is not None:
        refuse({**vars(loading), "vectors": None, "length": None, "labels": labels})
        select_table(
            table,
            built,
            amount,
            output,
            network=network,
            training=training,
            seed=seed,
            memory=memory,
            vectors=loading.vectors,
            length=loading.length,
            engine=engine,
            dry_run=dry_run,
        )
        return
    for flag, asked in (("--memory", memory), ("--workers or --engine", engine != LOCAL)):
        if asked:
            raise AttarError(f"{flag} is for tables that are read in parts: name the column with --features.")
    if embeddings is None:
        split = loading.read(str(data), device)
        given = _from_split(split, labels)
    else:
        given = _from_embeddings(embeddings, labels, loading.target, device)
    known = given.labels if embeddings else None
    decided = decide(given.source, built, labels=known, network=network, training=training, seed=seed, **amount)
    if dry_run:
        print_forecast(decided, registry.entry_of(built).cost)
        return
    made = {"budget": amount, "seed": seed, "network": given.network(network), "training": asdict(training)}
    with claimed(output):
        with working(f"{method}: selecting"), warnings_shown(), measure() as cost:
            picked = decided.run()
        picked.save(output, given.labels, {**given.about(built), **made})
    counted = count_in_words(picked.weights)
    out.print(
        f"{len(picked.indices):,} of {len(given.examples):,} examples of {plain(given.name)} by {method} "
        f"in {cost.wall:.1f} s, peak memory {cost.memory / 1e6:.0f} MB{counted and f', {counted}'} → {output}",
        soft_wrap=True,
    )


@dataclass(frozen=True)
class _Given:
    """The examples to select from."""

    name: str
    source: Split | Tensor
    examples: Data
    labels: Tensor | None

    def network(self, named: str | None) -> str | None:
        """The scoring network; None for embeddings."""
        return named or default(self.examples.spec) if isinstance(self.source, Split) else None

    def about(self, method: Selector) -> dict[str, Any]:
        """The examples, the validation set if the method uses it, the method, and the version of this library."""
        looks = isinstance(self.source, Split) and method.needs.validation
        held = {"validation": self.source.val.fingerprint} if isinstance(self.source, Split) and looks else {}
        made = {"method": registry.entry_of(method).name, "options": registry.options_of(method)}
        known = {"data": self.name, "fingerprint": self.examples.fingerprint, "version": version("attar")}
        return {**known, **held, **made}


def _from_split(split: Split, labels: Path | None) -> _Given:
    if labels is not None:
        raise AttarError("DATA has its own labels: leave out --labels, or give --embeddings.")
    return _Given(split.spec.name, split, split.train, split.train.hard)


def _from_embeddings(path: Path, labels: Path | None, target: str | None, device: str) -> _Given:
    if target is not None:
        raise AttarError("Embeddings have no named columns: leave out --target, and give --labels FILE.npy.")
    x = _array(path, "fiu", "numbers").to(device_of(device))
    if x.ndim != 2 or not x.numel():
        raise AttarError(f"{path} has shape {tuple(x.shape)}: give one row of numbers per example.")
    y = None if labels is None else _array(labels, "iu", "whole numbers").to(x.device)
    if y is not None and len(y) != len(x):
        raise AttarError(f"{path} has {len(x)} rows and {labels} {len(y)} labels: give one label per row.")
    examples = Data(x, torch.zeros(len(x)) if y is None else y, rows=torch.arange(len(x)))
    return _Given(path.stem, x, examples, y)


def _array(path: Path, kinds: str, what: str) -> Tensor:
    """An array written by numpy.save; float32 arrays are memory-mapped."""
    array = open_array(path)
    if array.dtype.kind not in kinds:
        raise AttarError(f"{path} does not hold an array of {what}: write one with numpy.save.")
    return torch.from_numpy(array if array.dtype == np.float32 else array.astype("f4" if "f" in kinds else "i8"))
