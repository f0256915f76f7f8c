"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.infer.run import what_is_lost
from attar.nets.fast.modes import Accelerate

DRAWS = 5  #: default number of networks whose predictions are averaged
LARGEST_SEED = 2**62
TABLE = "Tables larger than memory, as DATA"
BUDGET = "Size of the result (give one)"

DATA_HELP = (
    "Data set: a name (digits, mnist, fashion-mnist, kmnist, kuzushiji49, emnist, cifar10, cifar100, svhn, "
    "tiny-imagenet, imdb, trec6, trec50, sst5, hf:owner/name), or the path of a file (.npz, .safetensors, .csv, "
    ".parquet, .tsv, .txt, .label) or folder."
)


def require_own(coreset: Coreset, sampler: str | None, force: bool) -> None:
    """Refuse a sampler that the coreset was not made for, unless it is forced."""
    lost = "" if sampler is None else what_is_lost(coreset, sampler)
    if lost and not force:
        raise AttarError(f"{lost.removesuffix('.')}, or add --force.")


def _seed(value: int | None) -> int | None:
    if value is not None and not 0 <= value <= LARGEST_SEED:
        raise typer.BadParameter(f"{value} is not a whole number from 0 to 2^62.")
    return value


_DATA = typer.Argument(help=DATA_HELP, metavar="DATA", show_default=False)
_SEED = typer.Option(
    "--seed",
    callback=_seed,
    metavar="N",
    help="Random seed; the same seed gives exactly the same result.",
    show_default="0",
)

CoresetPath = Annotated[
    Path, typer.Argument(help="A coreset file made by `attar reduce`.", metavar="CORESET", show_default=False)
]
Source = Annotated[str, _DATA]
OptionalSource = Annotated[str | None, _DATA]
MethodName = Annotated[
    str | None,
    typer.Option("--method", "-m", metavar="NAME", help="Method name (see `attar methods`).", show_default=False),
]
PerClass = Annotated[
    int | None,
    typer.Option(
        "--per-class",
        "-n",
        metavar="N",
        help="Examples per class to keep or learn.",
        show_default=False,
        rich_help_panel=BUDGET,
    ),
]


def budget(default: str) -> Any:
    """The option that says how classes share the examples."""
    return typer.Option(
        "--budget",
        metavar="balanced|proportional|minimum[=N]",
        help="Class balance: the same number of each; as in the data; or as in the data, but at least N of each (by "
        "default half of the balanced number).",
        show_default=default,
        rich_help_panel=BUDGET,
    )


Budget = Annotated[str | None, budget("balanced")]
Fraction = Annotated[
    float | None,
    typer.Option(
        "--fraction",
        metavar="FRACTION",
        help="Fraction of the training set, such as 0.01.",
        show_default=False,
        rich_help_panel=BUDGET,
    ),
]
Seed = Annotated[int, _SEED]
OptionalSeed = Annotated[int | None, _SEED]
Recipe = Annotated[
    Path | None,
    typer.Option(
        "--recipe",
        "-r",
        metavar="FILE",
        help="TOML file with settings; options given here override it.",
        show_default=False,
    ),
]
Experts = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of networks trained by `attar experts`, for methods that need them.",
        show_default="the default folder of `attar experts`",
    ),
]
Seeds = Annotated[
    str,
    typer.Option(
        metavar="N,N,…", help="Random seeds, separated by commas; figures are means ± half widths of 95 % t-intervals."
    ),
]
Draws = Annotated[
    int, typer.Option(min=1, metavar="N", help="Networks drawn from the posterior, whose predictions are averaged.")
]
Evaluations = Annotated[
    int, typer.Option(min=1, metavar="N", help="Inference runs per coreset, each with its own seed.")
]
OwnSampler = Annotated[
    str | None,
    typer.Option(
        "--sampler",
        "-s",
        metavar="NAME",
        help="Inference method (see `attar methods`).",
        show_default="the coreset's recommended sampler",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Use another sampler than the recommended one, which ignores labels, scales or rates that were learnt for "
        "it; and accept more than 100,000 stored training steps.",
    ),
]
NetworkName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Network, such as convnet-d3w128, mlp or resnet18.",
        show_default="a small one for this kind of data",
    ),
]
OwnNetwork = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="NAME",
        help="Network, such as convnet-d3w128, mlp or resnet18.",
        show_default="the one that the coreset was made with",
    ),
]
CheckpointEvery = Annotated[
    float | None,
    typer.Option(
        "--checkpoint-every",
        min=0,
        metavar="SECONDS",
        help="Time between checkpoints, from which an interrupted run resumes.",
        show_default="30 seconds, or 100 steps if that is sooner",
    ),
]
Device = Annotated[str, typer.Option(metavar="NAME", help="Where to compute, such as cpu, cuda or mps.")]
_ACCELERATE = typer.Option(
    "--accelerate",
    metavar="MODE",
    help="Precision and compilation of training: none (float32), bfloat16, compile, bfloat16+compile, or auto, which "
    "tries them on this machine and takes the fastest that agrees with float32.",
    show_default="none",
)
Accelerated = Annotated[Accelerate, _ACCELERATE]
OptionalAccelerated = Annotated[Accelerate | None, _ACCELERATE]
Folder = Annotated[
    Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for all results; a rerun resumes from it.")
]


def first(*values: Any) -> Any:
    """The first value that is not None."""
    return next(value for value in values if value is not None)


def numbers(text: str, what: str) -> list[int]:
    """Whole numbers separated by commas."""
    try:
        found = list(dict.fromkeys(int(part) for part in text.split(",") if part.strip()))
    except ValueError:
        found = []
    if not found or min(found) < 0 or max(found) > LARGEST_SEED:
        raise AttarError(f"{what} must be whole numbers separated by commas, such as 1,10; got {text!r}.")
    return found


def words(text: str) -> tuple[str, ...]:
    """Words separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
