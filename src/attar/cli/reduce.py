"""`attar reduce`: reduce a data set to a coreset."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.pretty import Pretty

from attar.assess.validation import validation_score
from attar.cli.arguments import (
    Budget,
    CheckpointEvery,
    Device,
    Experts,
    Fraction,
    MethodName,
    NetworkName,
    OptionalAccelerated,
    OptionalSeed,
    OptionalSource,
    PerClass,
    Recipe,
)
from attar.cli.console import bar, out, plain, print_forecast, progress, warnings_shown
from attar.cli.loading import USUAL, Loading
from attar.cli.options import Chosen, RecipeFile, read_recipe
from attar.condense.observers import Observer, log, tensorboard, validate
from attar.core import registry
from attar.core.errors import AttarError
from attar.core.lock import claimed
from attar.data import Split
from attar.data.data import count_in_words
from attar.nets.train import Training
from attar.plan import Plan, plan
from attar.recommend import recommend
from attar.reduce import run
from attar.select.budget import per_class_of, warn_if_skewed

Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Coreset file to write.", show_default="DATA-METHOD-N.safetensors"
    ),
]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="DATA",
        help="Data set whose examples get learnt labels (label-distillation, label-solve).",
        show_default="the same data",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print all settings, with estimates of memory and time, and stop.")
]
Validate = Annotated[
    int | None,
    typer.Option(
        "--validate",
        min=0,
        metavar="N",
        help="Compute validation accuracy every N steps; 0 for never.",
        show_default="every steps/10",
    ),
]
Log = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", help="Write loss and scores of each step as JSON lines.", show_default=False),
]
Board = Annotated[
    Path | None,
    typer.Option(
        "--tensorboard",
        metavar="FOLDER",
        help="Write the same for TensorBoard (pip install 'attar[track]').",
        show_default=False,
    ),
]
Processes = Annotated[
    int,
    typer.Option(
        "--processes",
        min=1,
        help="Processes that share the work of this one run (data-parallel), for methods that can be divided.",
    ),
]


def reduce(
    context: typer.Context,
    data: OptionalSource = None,
    method: MethodName = None,
    per_class: PerClass = None,
    fraction: Fraction = None,
    budget: Budget = None,
    output: Output = None,
    recipe: Recipe = None,
    dry_run: DryRun = False,
    seed: OptionalSeed = None,
    network: NetworkName = None,
    experts: Experts = None,
    base: Base = None,
    device: Device = "cpu",
    accelerate: OptionalAccelerated = None,
    validation: Validate = None,
    log_file: Log = None,
    board: Board = None,
    checkpoint_every: CheckpointEvery = None,
    processes: Processes = 1,
    loading: Loading = USUAL,
    *,
    chosen: Chosen,
) -> None:
    """Reduce a data set to a few examples of each class, selected or learnt.

    The result is a coreset file, which the other commands take:

        attar reduce digits --per-class 10
        attar reduce digits --method herding --per-class 10
        attar reduce digits --method dm --per-class 1 --steps 100 -o d.safetensors
        attar reduce table.csv --target species --method vbpc --fraction 0.05

    Without a method it does what `attar recommend` says. The default size is one example per class. Name a method to
    see its options too: `attar reduce --method dm --help`.
    Ctrl-C saves the run, as do SIGTERM and a closed terminal; the same command resumes it.
    """
    asked = read_recipe(recipe).changed(context.params, chosen)
    if asked.data is None:
        raise AttarError("Give the data, such as `attar reduce digits --per-class 10`.")
    if asked.method is not None:
        registry.find(asked.method, *registry.REDUCERS)
    elif asked.options or asked.descent or asked.experts or asked.base:
        raise AttarError("Options, optimiser settings, experts and a base are a method's: name it with --method.")
    split = asked.loading.read(asked.data, device)
    if asked.method is None:
        asked = _recommended(asked, split)
    decided = plan(
        split,
        str(asked.method),
        per_class=asked.per_class,
        fraction=asked.fraction,
        budget=asked.budget,
        seed=asked.seed,
        network=asked.network,
        options=asked.options,
        descent=asked.descent,
        training=registry.make(Training, asked.training, "training"),
        experts=asked.experts,
        base=asked.base,
        accelerate=asked.accelerate,
    )
    every = _every(decided, validation)
    if dry_run:
        _show(decided)
        return
    path = output or Path(f"{split.spec.name}-{asked.method}-{decided.per_class}.safetensors")
    with warnings_shown():
        warn_if_skewed(split.train.hard.bincount(), decided.budget)
    with claimed(path):
        watched = _observers(decided, split, every, log_file, board)
        _run(decided, split, path, watched, checkpoint_every, processes)


def _recommended(asked: RecipeFile, split: Split) -> RecipeFile:
    """What was asked for, with the method and settings that ``recommend`` gives."""
    size = per_class_of(split.train, asked.per_class, asked.fraction)
    found = recommend(split, per_class=size, budget=asked.budget, network=asked.network)
    out.print(
        plain(
            f"No method is named; `attar recommend` says {shlex.join(found.flags)}: {found.expectation}. {found.why}"
        ),
        soft_wrap=True,
        highlight=False,
    )
    own = found.arguments
    return replace(asked, method=found.method, options=own["options"], descent=own["descent"])


def _every(decided: Plan, validation: int | None) -> int:
    """Steps between validation scores, or 0."""
    if decided.descent is None:
        return 0
    return max(1, decided.descent.steps // 10) if validation is None else validation


def _observers(decided: Plan, split: Split, every: int, log_file: Path | None, board: Path | None) -> list[Observer]:
    found: list[Observer] = []
    if every:
        score = validation_score(split.val, decided.network, decided.training)
        found.append(partial(validate, score=score, every=every))
    if log_file:
        found.append(partial(log, path=log_file))
    if board:
        found.append(partial(tensorboard, folder=board))
    return found


def _run(
    decided: Plan, split: Split, path: Path, observers: list[Observer], seconds: float | None, processes: int
) -> None:
    checkpoint = path.with_name(path.name + ".checkpoint")
    name = decided.recipe().method
    with bar() as shown, warnings_shown():
        if decided.descent is None:
            shown.add_task(f"{name}: selecting", total=None)
        else:
            observers = [*observers, partial(progress, shown=shown, description=name)]
        coreset = run(decided, observers, checkpoint, checkpoint_every=seconds, processes=processes)
    coreset.save(path)
    checkpoint.unlink(missing_ok=True)
    cost, counted = coreset.recipe.cost, count_in_words(coreset.data.weights)
    out.print(
        f"{len(split.train):,} examples of {plain(split.spec.name)} → {len(coreset)} by {name} "
        f"in {cost.wall:.1f} s, peak memory {cost.memory / 1e6:.0f} MB{counted and f', {counted}'} → {path}",
        soft_wrap=True,
    )


def _show(decided: Plan) -> None:
    recipe = asdict(decided.recipe())
    del recipe["cost"]
    out.print(Pretty(recipe, expand_all=True))
    out.print(f"network: {decided.network.size:,} parameters")
    print_forecast(decided, registry.entry_of(decided.method).cost)
