"""The options of commands that run many jobs: how many at once, and where."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from attar.cli.options import signed
from attar.engine import Engine, Where
from attar.experts.progress import cores


def with_engine(
    command: Callable[..., None], *, all_cores: bool = False, panel: str | None = None
) -> Callable[..., None]:
    """Replace the parameter ``engine`` of a command by the flags that make one.

    Args:
        command: The command.
        all_cores: Whether it uses all cores if the user does not say how many workers; one worker on another device.
        panel: Heading of the flags in help.
    """
    flags = _flags(all_cores, panel)

    def call(**values: Any) -> None:
        workers, where, address, gpus = (values.pop(name) for name in flags)
        if workers is None:
            workers = cores() if values["device"].startswith("cpu") else 1
        command(**values, engine=Engine(where, workers, address, gpus))

    made = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in flags.items()
    ]
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    place = [parameter.name for parameter in own].index("engine")
    return signed(call, command, [*own[:place], *made, *own[place + 1 :]])


def _flags(all_cores: bool, panel: str | None) -> dict[str, tuple[Any, Any]]:
    """Types and defaults of the flags, in the order of help."""
    where = typer.Option(
        metavar="local|ray", help="Where jobs run; ray needs `pip install 'attar[ray]'`.", rich_help_panel=panel
    )
    workers = typer.Option(
        min=1,
        metavar="N",
        help="Processes that work at the same time; a Ray cluster that already runs uses all it has.",
        show_default="one for each core; one on a GPU" if all_cores else True,
        rich_help_panel=panel,
    )
    address = typer.Option(
        metavar="HOST:PORT",
        help="Ray cluster to use.",
        show_default="$RAY_ADDRESS, else this machine",
        rich_help_panel=panel,
    )
    gpus = typer.Option(
        min=0,
        metavar="NUMBER",
        help="GPUs that Ray gives to each job; below 1, jobs share one.",
        show_default=False,
        rich_help_panel=panel,
    )
    return {
        "workers": (Annotated[int | None, workers], None if all_cores else 1),
        "engine": (Annotated[Where, where], "local"),
        "address": (Annotated[str | None, address], None),
        "gpus_per_job": (Annotated[float, gpus], 0.0),
    }
