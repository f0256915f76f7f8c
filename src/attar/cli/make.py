"""Commands that make files: reduce, infer, export."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.pretty import Pretty

from attar.assess.validation import validation_score
from attar.cli.arguments import (
    DATA_HELP,
    CoresetPath,
    Device,
    Draws,
    Experts,
    NetworkName,
    OwnSampler,
    Recipe,
    Seed,
    Target,
    first,
    read,
    to_device,
    torch_device,
)
from attar.cli.console import bar, err, out, progress, warnings_shown
from attar.cli.options import Chosen, read_recipe
from attar.condense.observers import Observer, log, tensorboard, validate
from attar.core import registry
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.data import Split
from attar.export import export as write_export
from attar.infer import infer as infer_posterior
from attar.nets.train import Training
from attar.plan import Plan, plan
from attar.reduce import run


def reduce(
    data: Annotated[str | None, typer.Argument(help=DATA_HELP, metavar="DATA", show_default=False)] = None,
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="How; `attar methods` lists them.", show_default=False)
    ] = None,
    per_class: Annotated[
        int | None, typer.Option("--per-class", "-n", help="Examples of every class.", show_default="1")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write.", show_default="DATA-METHOD-N.safetensors")
    ] = None,
    recipe: Recipe = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved recipe and stop.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**62, help="Fixes every random choice.", show_default="0")
    ] = None,
    network: NetworkName = None,
    scaling: Annotated[
        str | None, typer.Option(help="How examples are scaled: standard, zca or none.", show_default="standard")
    ] = None,
    experts: Experts = None,
    target: Target = None,
    device: Device = "cpu",
    validation: Annotated[
        int | None,
        typer.Option("--validate", min=0, help="Steps between validation scores, or 0.", show_default="a tenth"),
    ] = None,
    log_file: Annotated[
        Path | None, typer.Option("--log", help="JSON-lines file with a line a step.", show_default=False)
    ] = None,
    board: Annotated[
        Path | None, typer.Option("--tensorboard", help="Folder for TensorBoard (extra: track).", show_default=False)
    ] = None,
    *,
    chosen: Chosen,
) -> None:
    """Distil a data set into a few examples of every class.

    Name a method to see its own options too: `attar reduce --method dc --help`. A flag beats the recipe file. Ctrl-C
    saves the run; the same command goes on from there.
    """
    file = read_recipe(recipe)
    name, source = method or file.method, data or file.data
    if name is None or source is None:
        raise AttarError("Say what to reduce and how, such as `attar reduce digits --method dc --per-class 1`.")
    registry.find(name, *registry.REDUCERS)
    split = to_device(read(source, scaling or file.scaling or "standard", target), device)
    decided = plan(
        split,
        name,
        per_class=first(per_class, file.per_class, 1),
        seed=first(seed, file.seed, 0),
        network=network or file.network,
        options=file.options | chosen.options,
        descent=file.descent | chosen.descent,
        training=registry.make(Training, file.training | chosen.training, "training"),
        experts=experts or file.experts,
    )
    if dry_run:
        _show(decided)
        return
    path = output or Path(f"{split.spec.name}-{name}-{decided.per_class}.safetensors")
    _carry_out(decided, split, path, validation, log_file, board)


def infer(
    coreset: CoresetPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The posterior file to write.")] = Path(
        "posterior.safetensors"
    ),
    sampler: OwnSampler = None,
    draws: Draws = 5,
    seed: Seed = 0,
    network: NetworkName = None,
    device: Device = "cpu",
    *,
    chosen: Chosen,
) -> None:
    """Infer the posterior that a coreset gives, starting from the prior, by default as its method means it.

    Name a sampler to see its own options too: `attar infer --sampler sghmc --help`. Training options change the
    coreset's own schedule.
    """
    loaded = Coreset.load(coreset).to(torch_device(device))
    training = registry.make(Training, asdict(loaded.training) | chosen.training, "training")
    with err.status(f"{sampler or loaded.recipe.sampler}: {draws} draws from {len(loaded)} examples"), warnings_shown():
        posterior = infer_posterior(
            loaded, sampler, draws=draws, seed=seed, network=network, training=training, options=chosen.options
        )
    posterior.save(output)
    kept, net = len(posterior.theta), posterior.network
    out.print(f"{kept} draws of {net.name} ({net.size:,} parameters) by {posterior.notes['sampler']} → {output}")


def export(
    coreset: CoresetPath,
    output: Annotated[Path, typer.Argument(help="File or folder to write; its ending says the format.")],
    kind: Annotated[
        str | None, typer.Option(help="Format, where the ending does not say: npz, folder, parquet, hf, png, csv.")
    ] = None,
) -> None:
    """Write a coreset for other programs: .npz, .parquet, .png, .csv, a folder of images, a Hugging Face data set."""
    out.print(f"wrote {write_export(Coreset.load(coreset), output, kind)}")


def _carry_out(
    decided: Plan, split: Split, path: Path, validation: int | None, log_file: Path | None, board: Path | None
) -> None:
    checkpoint = path.with_name(path.name + ".checkpoint")
    recipe = decided.recipe()
    with bar() as shown:
        observers: list[Observer] = []
        if decided.descent is not None:
            every = decided.descent.steps // 10 or 1 if validation is None else validation
            if every:
                score = validation_score(split.val, decided.network, decided.training)
                observers.append(partial(validate, score=score, every=every))
            if log_file:
                observers.append(partial(log, path=log_file))
            if board:
                observers.append(partial(tensorboard, folder=board))
            observers.append(partial(progress, shown=shown, description=recipe.method))
        elif shown.console.is_terminal:
            shown.add_task(f"{recipe.method}: selecting", total=None)
        coreset = run(decided, observers, checkpoint)
    coreset.save(path)
    checkpoint.unlink(missing_ok=True)
    cost = coreset.recipe.cost
    out.print(
        f"{len(split.train):,} examples of {split.spec.name} → {len(coreset)} by {recipe.method} "
        f"in {cost.wall:.1f} s, peak memory {cost.memory / 1e6:.0f} MB → {path}"
    )


def _show(decided: Plan) -> None:
    recipe = asdict(decided.recipe())
    del recipe["cost"]
    out.print(Pretty(recipe, expand_all=True))
    out.print(f"network: {decided.network.size:,} parameters")
    out.print(f"estimated memory beside the libraries: about {decided.memory() / 1e6:.0f} MB")
