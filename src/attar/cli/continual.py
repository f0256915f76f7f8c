"""`attar continual`: class-incremental learning with memories of several methods."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from attar.cli.arguments import CheckpointEvery, Device, Folder, Recipe
from attar.cli.console import bar, command, fetching, following, out, step_observers, warnings_shown
from attar.cli.engine import steps_elsewhere
from attar.cli.fields import flag_of, spec_of
from attar.cli.options import Chosen
from attar.cli.tables import stage_table
from attar.continual import ContinualSpec
from attar.continual.run import run_continual
from attar.core.device import device_of
from attar.core.errors import AttarError
from attar.engine.pool import LOCAL, Engine
from attar.report import report

MANY = ("data", "methods", "seeds")  # fields whose flags take several values, separated by commas


def _flag(name: str, *flags: str) -> Any:
    return flag_of(ContinualSpec, MANY, name, *flags)


def continual(
    context: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="Data set, as for `attar reduce`; or several with the same classes, separated by commas: then each is "
            "one stage.",
            show_default=False,
        ),
    ] = None,
    stages: Annotated[int | None, _flag("stages")] = None,
    methods: Annotated[str | None, _flag("methods", "--methods", "-m")] = None,
    per_class: Annotated[int | None, _flag("per_class", "--per-class", "-n")] = None,
    fraction: Annotated[float | None, _flag("fraction")] = None,
    seeds: Annotated[str | None, _flag("seeds")] = None,
    output: Folder = Path("continual"),
    recipe: Recipe = None,
    regime: Annotated[str | None, _flag("regime")] = None,
    distillation: Annotated[float | None, _flag("distillation")] = None,
    distillation_kind: Annotated[str | None, _flag("distillation_kind")] = None,
    distillation_temperature: Annotated[float | None, _flag("distillation_temperature")] = None,
    order: Annotated[int | None, _flag("order")] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of all methods that learn.", show_default="each method's own")
    ] = None,
    network: Annotated[str | None, _flag("network")] = None,
    sampler: Annotated[str | None, _flag("sampler", "--sampler", "-s")] = None,
    draws: Annotated[int | None, _flag("draws")] = None,
    baselines: Annotated[bool | None, _flag("baselines", "--baselines/--no-baselines")] = None,
    target: Annotated[str | None, _flag("target")] = None,
    columns: Annotated[str | None, _flag("columns")] = None,
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
    """Learn the classes of DATA in stages, with a memory that each method fills: accuracy and forgetting by stage.

    In every stage only the data of its own classes is there; of earlier stages, the memory keeps a few examples per
    class:

        attar continual digits --stages 5 --methods dm,dc --per-class 10
        attar continual cifar100 --stages 10 --regime finetune -m herding
        attar continual mnist,usps.npz,digits28.npz -m dsa --seeds 0,1,2

    Any method of `attar methods` can fill the memory. With --regime memory a new network is trained on the memory alone
    after every stage. With --regime finetune the network of the last stage is trained further, on the memory and the
    new data, with a distillation loss of weight λ on the old classes, before the memory is filled; mnemonics learns
    from this network. The number of stages must divide the number of classes. A random subset, herding and a memory of
    all data are added for comparison.

    Finished runs are kept: after an interruption, the same command runs only what is missing. With other methods or
    seeds the results grow.
    """
    spec = spec_of(ContinualSpec, recipe, context.params, chosen, many=MANY, counts=("seeds",))
    spec = spec if steps is None else replace(spec, descent=spec.study.stepped(steps).descent)
    if not spec.data:
        raise AttarError("Give the data, such as `attar continual digits --stages 5`.")
    place = device_of(device)
    with fetching() as note, warnings_shown():
        splits = [split.to(place) for split in spec.load_data(progress=note)]
    with bar() as shown, warnings_shown(), steps_elsewhere(shown, output, engine):
        found = run_continual(
            spec,
            splits,
            output,
            command=command(),
            engine=engine,
            observers=step_observers(shown, engine),
            checkpoint_every=checkpoint_every,
            watch=following(shown),
        )
    out.print(stage_table(found))
    out.print(f"report: {report(found, output / 'report.html').resolve()}", soft_wrap=True)
