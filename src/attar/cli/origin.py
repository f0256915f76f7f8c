"""Load the data that a file was made from."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from attar.cli.console import fetching, plain, warnings_shown
from attar.core.errors import AttarError
from attar.data import Spec, Split
from attar.data.again import foreign, load_again, source_of
from attar.data.load import Source
from attar.data.split import Origin


def data_of(
    file: Path,
    spec: Spec,
    origin: Origin | None,
    data: str | None,
    flag: str,
    *,
    test: str | None = None,
    target: str | None = None,
) -> Split:
    """The data that a coreset or posterior was made from, with the same scaling and split.

    Args:
        file: Its file.
        spec: Its spec.
        origin: How its data was loaded, if recorded.
        data: The data that the user gave; by default the recorded one, for a path or hub name only after confirmation.
        flag: The argument with which the user gives the data, for error messages.
        test: A separate test set, with ``data``.
        target: The label column; by default the recorded one.
    """
    source: Source | None = data if test is None else {"train": data, "test": test}
    if data is None:
        if test is not None:
            raise AttarError(f"A separate test set needs its training data: give that with {flag} too.")
        if origin is None and foreign(Origin(spec.name)):
            raise AttarError(f"{file} does not say where its data is: give it with {flag}.")
        if origin is not None and (places := foreign(origin)):
            source = _confirmed(file, origin, places, flag)
    with fetching() as note, warnings_shown():
        return load_again(spec, origin, source, target=target, progress=note)


def _confirmed(file: Path, origin: Origin, places: list[str], flag: str) -> Source:
    """A path in a file is not trusted: ask the user to confirm it."""
    named = plain(" and ".join(places))
    if not sys.stdin.isatty():
        raise AttarError(f"{file} says that it was made from {named}: if you trust that, give it with {flag}.")
    if not typer.confirm(f"{file} says that it was made from {named}. Load that?"):
        raise AttarError(f"Nothing was loaded: give the data with {flag}.")
    return source_of(origin)
