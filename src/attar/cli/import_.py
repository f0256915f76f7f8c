"""`attar import`: a set that was made elsewhere, as a coreset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attar.cli.arguments import NetworkName, Seed
from attar.cli.console import out, plain
from attar.cli.loading import Loading
from attar.cli.options import Chosen
from attar.core import registry
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.data.foreign import CONVENTIONS, arrays, asked, pick
from attar.nets.train import Training
from attar.recipe import FOREIGN

SAID = "What the arrays do not say"

File = Annotated[
    Path,
    typer.Argument(help="Arrays: a .npz, .safetensors or .npy file.", metavar="FILE", show_default=False),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Coreset file to write.")]
Images = Annotated[str, typer.Option(metavar="NAME", help="Name of the array of examples in FILE.")]
Labels = Annotated[
    str,
    typer.Option(metavar="NAME|FILE", help="Name of the array of labels in FILE, or a .npy file of them."),
]
Weights = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of the array of weights in FILE, if any.", show_default=False)
]
Data = Annotated[
    str | None,
    typer.Option(
        metavar="DATA", help="Data set that it stands for, such as cifar10.", show_default=False, rich_help_panel=SAID
    ),
]
Scaling = Annotated[
    str | None,
    typer.Option(
        metavar="standard|zca|none",
        help="How its examples are scaled; fitted on DATA.",
        show_default=False,
        rich_help_panel=SAID,
    ),
]
Convention = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(CONVENTIONS),
        help="What labels in rows mean: "
        + ", ".join(f"{name} are {about}" for name, about in CONVENTIONS.items())
        + ".",
        show_default="whole numbers are classes",
        rich_help_panel=SAID,
    ),
]
Method = Annotated[str, typer.Option(metavar="NAME", help="What made it.", rich_help_panel=SAID)]
Published = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="TEXT",
        help="Where it was published, such as a repository and a commit.",
        show_default=False,
        rich_help_panel=SAID,
    ),
]
Recommended = Annotated[
    str | None,
    typer.Option(
        "--sampler",
        "-s",
        metavar="NAME",
        help="Recommended inference method (see `attar methods`).",
        show_default="ensemble, and last-layer-vi for regression targets",
        rich_help_panel=SAID,
    ),
]


def import_(
    file: File,
    output: Output = Path("imported.safetensors"),
    images: Images = "images",
    labels: Labels = "labels",
    weights: Weights = None,
    data: Data = None,
    scaling: Scaling = None,
    convention: Convention = None,
    method: Method = FOREIGN,
    source: Published = None,
    sampler: Recommended = None,
    network: NetworkName = None,
    seed: Seed = 0,
    *,
    chosen: Chosen,
) -> None:
    r"""Make a coreset from arrays that another program made.

    Arrays do not say how they are scaled, what labels mean and how to train on them, so state it:

        attar import distilled.npz --data cifar10 --images images \
            --labels labels --scaling zca --convention centred --method rfad \
            --train-loss squared --train-optimiser adam --train-lr 0.001 \
            -o rfad.safetensors

    The result can be shown, trained on, evaluated and submitted like any coreset; `attar submit` judges it beside
    others. What contradicts the arrays is refused: pixels that are said to be scaled, rows that are no probabilities,
    another shape. Pickles (.pt, .pkl) are never read: save their arrays with numpy.savez.
    """
    found = arrays(file)
    only = next(iter(found)) if file.suffix == ".npy" else images
    y = pick(arrays(labels), Path(labels).stem, labels) if labels.endswith(".npy") else pick(found, labels, file)
    x, own = pick(found, only, file), None if weights is None else pick(found, weights, file)
    given = {"data": data, "scaling": scaling, "training": chosen.training or None}
    if missing := [asked(name) for name, value in given.items() if value is None]:
        raise AttarError(f"{file} does not say everything: state {'; '.join(missing)}.")
    made = Coreset.from_arrays(
        x,
        y,
        data=Loading(scaling=scaling).read(str(data)),
        scaling=scaling,
        convention=convention,
        training=registry.make(Training, chosen.training, "training"),
        weights=own,
        method=method,
        seed=seed,
        network=network,
        sampler=sampler,
        sampler_options=chosen.options,
        source=source,
    )
    made.save(output)
    out.print(f"{plain(repr(made))} → {output}", soft_wrap=True)
