"""Commands that run many jobs: the options that say how many at once and where, and steps that are made elsewhere."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, TaskID

from attar.cli.signature import replaced
from attar.core.errors import AttarError
from attar.engine import Engine, Where
from attar.experts.progress import cores
from attar.study.progress import Running, state

EVERY = 1.0  #: seconds between two looks at the logs
AT_ONCE = 8  #: runs whose steps are shown


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
        workers, where, address, gpus, cpus = (values.pop(name) for name in flags)
        if workers is None:
            workers = cores() if values["device"].startswith("cpu") else 1
        command(**values, engine=Engine(where, workers, address, gpus, cpus))

    made = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in flags.items()
    ]
    return replaced(call, command, "engine", made)


def _flags(all_cores: bool, panel: str | None) -> dict[str, tuple[Any, Any]]:
    """Types and defaults of the flags, in the order of help."""
    where = typer.Option(
        metavar="local|ray", help="Where jobs run; ray needs `pip install 'attar[ray]'`.", rich_help_panel=panel
    )
    workers = typer.Option(
        min=1,
        metavar="N",
        help="Processes that work at the same time; a running Ray cluster ignores this.",
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
    cpus = typer.Option(
        min=1,
        metavar="N",
        help="Threads of each job, for which Ray keeps as many processors.",
        show_default="the cores divided among the workers; one on a Ray cluster that already runs",
        rich_help_panel=panel,
    )
    return {
        "workers": (Annotated[int | None, workers], None if all_cores else 1),
        "engine": (Annotated[Where, where], "local"),
        "address": (Annotated[str | None, address], None),
        "gpus_per_job": (Annotated[float, gpus], 0.0),
        "cpus_per_job": (Annotated[int | None, cpus], None),
    }


@contextmanager
def steps_elsewhere(shown: Progress, folder: Path, engine: Engine) -> Iterator[None]:
    """Show the steps of a study's runs in other processes and on other nodes, by the logs in its folder."""
    if engine.here:  # an observer shows them
        yield
        return
    over, tasks = threading.Event(), dict[str, TaskID]()

    def follow() -> None:
        while not over.wait(EVERY):
            with suppress(AttarError, OSError):  # of a file that is just replaced; those that write it tell of errors
                _show(shown, tasks, state(folder).running[:AT_ONCE])

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        _show(shown, tasks, ())


def _show(shown: Progress, tasks: dict[str, TaskID], running: Sequence[Running]) -> None:
    for key in tasks.keys() - {run.key for run in running}:
        shown.remove_task(tasks.pop(key))
    for run in running:
        if run.key not in tasks:
            tasks[run.key] = shown.add_task(f"  {run.key}", total=run.steps, unit="steps")
        note = "" if run.loss is None else f"loss {run.loss:.4g}"
        shown.update(tasks[run.key], completed=run.step, note=note)
