"""The data that a file says it was made from."""

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
    """The data that a coreset or posterior was made from, scaled and cut as it was.

    Args:
        file: Its file.
        spec: What it holds.
        origin: What it says of its data.
        data: What the user says; the file's word if not set, for a path or hub name only if the user agrees.
        flag: How the user names the data, for the error.
        test: A separate test set beside ``data``.
        target: The label column; the one of then if not set.
    """
    source: Source | None = data if test is None else {"train": data, "test": test}
    if data is None:
        if test is not None:
            raise AttarError(f"A separate test set belongs to training data: name that with {flag} too.")
        if origin is None and foreign(Origin(spec.name)):
            raise AttarError(f"{file} does not say where its data is: name it with {flag}.")
        if origin is not None and (places := foreign(origin)):
            source = _confirmed(file, origin, places, flag)
    with fetching() as note, warnings_shown():
        return load_again(spec, origin, source, target=target, progress=note)


def _confirmed(file: Path, origin: Origin, places: list[str], flag: str) -> Source:
    """What a file names may be anything that it was made to name, so the user decides."""
    named = plain(" and ".join(places))
    if not sys.stdin.isatty():
        raise AttarError(f"{file} says that it was made from {named}: if you trust that, name it with {flag}.")
    if not typer.confirm(f"{file} says that it was made from {named}. Load that?"):
        raise AttarError(f"Nothing was loaded: name the data with {flag}.")
    return source_of(origin)
