"""The command that selects examples: `attar select`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor

from attar.cli.arguments import DATA_HELP, Device, NetworkName, Scaling, Seed, Target, read, to_device, torch_device
from attar.cli.console import bar, out, warnings_shown
from attar.cli.options import Chosen
from attar.core import registry
from attar.core.cost import measure
from attar.core.errors import AttarError
from attar.data import Data, Split
from attar.nets import default
from attar.nets.train import Training
from attar.select import select as choose
from attar.select.contract import require_ending

BUDGET = "Budget: one of size, fraction and per class"
GIVEN = "Embeddings instead of DATA"


def select(
    data: Annotated[str | None, typer.Argument(help=DATA_HELP, metavar="DATA", show_default=False)] = None,
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="How; `attar methods` lists them.", show_default=False)
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Examples in all.", show_default=False, rich_help_panel=BUDGET)
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option(help="Share of the examples, such as 0.01.", show_default=False, rich_help_panel=BUDGET),
    ] = None,
    per_class: Annotated[
        int | None,
        typer.Option("--per-class", "-n", help="Examples of every class.", show_default=False, rich_help_panel=BUDGET),
    ] = None,
    balanced: Annotated[
        bool | None,
        typer.Option(
            "--balanced/--no-balanced",
            help="Share a size or fraction among classes equally, or in proportion to how large they are.",
            show_default="whatever the method picks",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(help="A .npy file with one row an example.", show_default=False, rich_help_panel=GIVEN),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="A .npy file with the class of each, whole numbers from 0.", show_default=False, rich_help_panel=GIVEN
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write: .csv, .npz or .safetensors.")
    ] = Path("picks.csv"),
    part: Annotated[
        int | None,
        typer.Option(min=1, help="Select from parts of so many first, such as 4096.", show_default="all at once"),
    ] = None,
    seed: Seed = 0,
    network: NetworkName = None,
    scaling: Scaling = "standard",
    target: Target = None,
    device: Device = "cpu",
    *,
    chosen: Chosen,
) -> None:
    """Say which examples of a data set, or of embeddings, to keep: index, score, class and weight of each.

    One in a hundred images, as many of each class, through a network that is trained shortly first:

        attar select fashion-mnist --method lcmat-s --fraction 0.01 --balanced -o picks.csv

    A thousand rows that some other model made, without labels and in linear time:

        attar select --embeddings clip.npy --method k-center --size 1000 --part 4096

    Picks are in order, so that a smaller budget is the start of the file, or of each class. Where a method gives no
    weights, every pick weighs 1. An index counts the rows of the embeddings, or of `attar.load(DATA).train`, which is
    what is left after validation examples were cut. Methods that look at predictions need labels, those named -val need
    DATA. Name a method to see its options: `attar select -m lcmat-s --help`. To get examples that can be trained on at
    once, use `attar reduce`.
    """
    require_ending(output)
    if method is None:
        raise AttarError("Say how to select, such as `attar select digits --method herding --per-class 10`.")
    built = registry.build(method, chosen.options, "select")
    training: Training = registry.make(Training, chosen.training, "training")
    given = _given(data, embeddings, labels, scaling, target, device)
    known = given.labels if embeddings else None
    budget: dict[str, Any] = {
        "size": size,
        "fraction": fraction,
        "per_class": per_class,
        "balanced": balanced,
        "part": part,
    }
    with bar() as shown, warnings_shown(), measure() as cost:
        if shown.console.is_terminal:
            shown.add_task(f"{method}: selecting", total=None)
        picked = choose(given.source, built, labels=known, network=network, training=training, seed=seed, **budget)
    recipe = {
        "method": method,
        "options": registry.options_of(built),
        "budget": budget,
        "seed": seed,
        "network": None if embeddings else network or default(given.examples.spec),
        "training": asdict(training),
        "version": version("attar"),
    }
    picked.save(output, given.labels, {**given.about(built), **recipe})
    out.print(
        f"{len(picked.indices):,} of {len(given.examples):,} examples of {given.name} by {method} "
        f"in {cost.wall:.1f} s, peak memory {cost.memory / 1e6:.0f} MB → {output}",
        soft_wrap=True,
    )


@dataclass(frozen=True)
class _Given:
    """What is selected from."""

    name: str
    source: Split | Tensor
    examples: Data
    labels: Tensor | None

    def about(self, method: Any) -> dict[str, Any]:
        looks = isinstance(self.source, Split) and getattr(method, "needs_validation", False)
        held = {"validation": self.source.val.fingerprint} if isinstance(self.source, Split) and looks else {}
        return {"data": self.name, "fingerprint": self.examples.fingerprint, **held}


def _given(
    data: str | None, embeddings: Path | None, labels: Path | None, scaling: str, target: str | None, device: str
) -> _Given:
    if (data is None) == (embeddings is None):
        raise AttarError("Say what to select from: DATA, such as digits, or --embeddings FILE.npy, and not both.")
    if embeddings is not None:
        if target is not None:
            raise AttarError("Embeddings have no columns by name: leave out --target, and give --labels FILE.npy.")
        x = _array(embeddings, "fiu", "numbers").to(torch_device(device))
        y = None if labels is None else _array(labels, "iu", "whole numbers").to(x.device)
        if y is not None and len(y) != len(x):
            raise AttarError(f"{embeddings} has {len(x)} rows and {labels} {len(y)} labels: give one label a row.")
        return _Given(embeddings.stem, x, Data(x, torch.zeros(len(x)) if y is None else y), y)
    if labels is not None:
        raise AttarError("DATA has its own labels: leave out --labels, or give --embeddings.")
    assert data is not None
    split = to_device(read(data, scaling, target), device)
    return _Given(split.spec.name, split, split.train, split.train.hard)


def _array(path: Path, kinds: str, what: str) -> Tensor:
    """An array that numpy.save wrote; one of float32 is read from the disk only where it is looked at."""
    if not path.is_file():
        raise AttarError(f"There is no file {path}: check the path.")
    try:
        array = np.lib.format.open_memmap(path, mode="c")  # which also refuses archives and pickles
    except (ValueError, OSError, EOFError) as error:
        raise AttarError(f"{path} is not a whole .npy file ({error}): write it with numpy.save.") from error
    if array.dtype.kind not in kinds or not array.ndim:
        raise AttarError(f"{path} does not hold an array of {what}: write one with numpy.save.")
    return torch.from_numpy(array if array.dtype == np.float32 else array.astype("f4" if "f" in kinds else "i8"))
