"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from attar.cli.console import fetching
from attar.core.device import device_of
from attar.core.errors import AttarError
from attar.data import Split, load

DATA_HELP = "Name (digits, mnist, fashion-mnist, cifar10, svhn, hf:owner/name, …) or path of a file or folder."

CoresetPath = Annotated[Path, typer.Argument(help="A coreset made by `attar reduce`.", metavar="CORESET")]
Source = Annotated[str, typer.Argument(help=DATA_HELP, metavar="DATA", show_default=False)]
Seed = Annotated[
    int, typer.Option(min=0, max=2**62, help="Fixes every random choice: the same seed gives the same bits.")
]
Recipe = Annotated[
    Path | None, typer.Option("--recipe", "-r", help="TOML file with the same words as flags.", show_default=False)
]
Experts = Annotated[
    Path | None,
    typer.Option(help="Folder of `attar experts`, for methods that need them.", show_default="those made before"),
]
Seeds = Annotated[str, typer.Option(help="Seeds, separated by commas; figures are mean ± standard error over them.")]
Draws = Annotated[int, typer.Option(min=1, help="Networks whose predictions are averaged.")]
Evaluations = Annotated[int, typer.Option(min=1, help="Posteriors for each coreset, each from its own seed.")]
OwnSampler = Annotated[
    str | None,
    typer.Option(
        "--sampler", "-s", help="How posteriors are inferred: `attar methods`.", show_default="the method's own"
    ),
]
Target = Annotated[str | None, typer.Option(help="Label column, for CSV and Parquet tables.", show_default=False)]
Scaling = Annotated[str, typer.Option(help="How examples are scaled: standard, zca or none.")]
Device = Annotated[str, typer.Option(help="Where tensors live: cpu, cuda, mps, …")]
NetworkName = Annotated[
    str | None,
    typer.Option(help="Network, such as convnet-d3w128, mlp or resnet18; by shape if not set.", show_default=False),
]
QUESTIONS = "Questions"  # the panel of help for what costs extra time
Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Temperature scaling, fitted on validation data.", rich_help_panel=QUESTIONS)
]
FullDistance = Annotated[
    bool, typer.Option("--distance", help="Distance to the full data's prediction.", rich_help_panel=QUESTIONS)
]
Corruption = Annotated[
    bool, typer.Option("--corruption", help="Every corruption at five severities.", rich_help_panel=QUESTIONS)
]
Attacks = Annotated[
    str,
    typer.Option(
        "--attack", help="By commas: pgd, apgd-ce, apgd-dlr, apgd, autoattack, standard.", rich_help_panel=QUESTIONS
    ),
]
Networks = Annotated[
    str,
    typer.Option(help="Other networks to train on it: convnet,resnet10,vgg11,alexnet,mlp.", rich_help_panel=QUESTIONS),
]
Fairness = Annotated[
    bool, typer.Option("--fairness", help="Gain over random, label and augmentation.", rich_help_panel=QUESTIONS)
]
Privacy = Annotated[
    bool, typer.Option("--privacy", help="Membership inference, nearest neighbours.", rich_help_panel=QUESTIONS)
]
Strange = Annotated[
    str, typer.Option("--ood", help="Data sets to tell apart, by commas, of the same shape.", rich_help_panel=QUESTIONS)
]
Limit = Annotated[int, typer.Option(min=1, help="Test examples for corruption and attacks.", rich_help_panel=QUESTIONS)]
Folder = Annotated[Path, typer.Option("--output", "-o", help="Folder for everything that comes out; resumes from it.")]


def read(source: str, scaling: str = "standard", target: str | None = None) -> Split:
    """Load a data set, showing progress where it must be downloaded."""
    with fetching() as note:
        return load(source, scaling=scaling, target=target, progress=note)


def first(*values: Any) -> Any:
    """The first value that is set: the flag's, the recipe's, the default."""
    return next(value for value in values if value is not None)


def to_device(split: Split, device: str) -> Split:
    """The same sets on a device that the user named."""
    return split.to(torch_device(device))


def torch_device(name: str) -> torch.device:
    """The device of this name, or an error that says what to use instead."""
    return device_of(name)


def numbers(text: str, what: str) -> list[int]:
    """Whole numbers separated by commas."""
    try:
        found = list(dict.fromkeys(int(part) for part in text.split(",") if part.strip()))
    except ValueError:
        found = []
    if not found or min(found) < 0 or max(found) > 2**62:
        raise AttarError(f"{what} must be whole numbers separated by commas, such as 1,10; got {text!r}.")
    return found


def words(text: str) -> tuple[str, ...]:
    """Words separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
