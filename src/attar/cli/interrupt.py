"""What a command says when a signal ends it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import typer

from attar.cli.console import command, err, plain
from attar.core.signals import Interrupted, raised


def interruptible(run: Callable[..., None], resumes: bool) -> Callable[..., None]:
    """When a signal ends a command, say how to go on; typer would only end the program.

    Args:
        run: The command.
        resumes: Whether the same command goes on from what is saved, where the signal says nothing of it.
    """

    @wraps(run)
    def call(*args: Any, **kwargs: Any) -> None:
        try:
            with raised():
                run(*args, **kwargs)
        except Interrupted as stop:
            with suppress(OSError):  # the terminal may be gone
                err.print(_goodbye(stop, resumes), highlight=False, soft_wrap=True)
            raise typer.Exit(128 + stop.number) from stop

    return call


def _goodbye(stop: Interrupted, resumes: bool) -> str:
    if not resumes and not str(stop):
        return f"Stopped; nothing is kept. To start again, run: {command()}"
    return f"{plain(str(stop)) or 'Stopped; what is finished is kept.'} To go on, run: {command()}"
