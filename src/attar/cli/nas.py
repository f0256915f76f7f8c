"""`attar nas`: rank networks by training them on proxy sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from attar.cli.arguments import DATA_HELP, CheckpointEvery, Device, Folder, Recipe
from attar.cli.console import bar, command, err, fetching, following, out, plain, step_observers, warnings_shown
from attar.cli.engine import steps_elsewhere
from attar.cli.fields import flag_of, spec_of
from attar.cli.options import Chosen
from attar.cli.tables import search_table
from attar.core.device import device_of
from attar.core.errors import AttarError
from attar.engine.pool import LOCAL, Engine
from attar.nas import NasSpec
from attar.nas.run import run_nas
from attar.report import report

COUNTS = ("seeds", "depths", "widths")  # whole numbers, separated by commas
MANY = ("methods", "norms", "activations", "pools", *COUNTS)  # fields whose flags take several values


def _flag(name: str, *flags: str) -> Any:
    return flag_of(NasSpec, MANY, name, *flags)


def nas(
    context: typer.Context,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)] = None,
    methods: Annotated[str | None, _flag("methods", "--methods", "-m")] = None,
    per_class: Annotated[int | None, _flag("per_class", "--per-class", "-n")] = None,
    fraction: Annotated[float | None, _flag("fraction")] = None,
    seeds: Annotated[str | None, _flag("seeds")] = None,
    output: Folder = Path("nas"),
    recipe: Recipe = None,
    depths: Annotated[str | None, _flag("depths")] = None,
    widths: Annotated[str | None, _flag("widths")] = None,
    norms: Annotated[str | None, _flag("norms")] = None,
    activations: Annotated[str | None, _flag("activations")] = None,
    pools: Annotated[str | None, _flag("pools")] = None,
    full_steps: Annotated[int | None, _flag("full_steps")] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of all methods that learn.", show_default="each method's own")
    ] = None,
    network: Annotated[str | None, _flag("network")] = None,
    experts: Annotated[str | None, _flag("experts")] = None,
    sampler: Annotated[str | None, _flag("sampler", "--sampler", "-s")] = None,
    baselines: Annotated[bool | None, _flag("baselines", "--baselines/--no-baselines")] = None,
    target: Annotated[str | None, _flag("target")] = None,
    resize: Annotated[str | None, _flag("resize")] = None,
    scaling: Annotated[str | None, _flag("scaling")] = None,
    val: Annotated[float | None, _flag("val")] = None,
    test_data: Annotated[str | None, _flag("test_data", "--test")] = None,
    engine: Engine = LOCAL,
    device: Device = "cpu",
    checkpoint_every: CheckpointEvery = None,
    *,
    chosen: Chosen,
) -> None:
    """Search for an architecture on small proxy sets: how well each method's set ranks a grid of ConvNets.

    Every network of the grid is trained on the proxy set of each method, and once on the full data:

        attar nas digits --methods dm,dc --per-class 10 --full-steps 1000
        attar nas fashion-mnist -m dsa,vbpc --depths 1,2,3 --widths 8,16,32
        attar nas cifar10 -m dm --activations relu,sigmoid --pools avg,max,none

    The table shows the rank correlation with training on the full data, over all networks and over the ten best of the
    search, the test accuracy of the network that each search chose, and the time of the search. A random subset,
    herding and early stopping (the full data for as many steps as a proxy set) are added for comparison.

    Finished trainings are kept: after an interruption, the same command runs only what is missing, and another method
    in the same folder uses the same trainings on the full data.
    """
    spec = spec_of(NasSpec, recipe, context.params, chosen, many=MANY, counts=COUNTS)
    spec = spec if steps is None else replace(spec, descent=spec.study.stepped(steps).descent)
    if spec.data is None:
        raise AttarError("Give the data to search on, such as `attar nas digits --methods dm`.")
    place = device_of(device)
    with fetching() as note, warnings_shown():
        split = spec.load_data(progress=note).to(place)
    with bar() as shown, warnings_shown(), steps_elsewhere(shown, output, engine):
        found = run_nas(
            spec,
            split,
            output,
            command=command(),
            engine=engine,
            observers=step_observers(shown, engine),
            checkpoint_every=checkpoint_every,
            watch=following(shown),
        )
    out.print(search_table(found))
    for trial in found.trials:
        if trial.problem:
            err.print(plain(f"warning: {trial.row}, {trial.network}: {trial.problem}"), style="yellow")
    out.print(f"report: {report(found, output / 'report.html').resolve()}", soft_wrap=True)
