"""`attar methods`: the list of methods, or one method in detail."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from textwrap import fill, wrap
from typing import Annotated

import typer
from rich.table import Table

from attar.cli.console import out
from attar.cli.options import describe
from attar.core import registry
from attar.core.method import Descent, Method
from attar.plan import needs_of

FAMILIES = {
    "select": "keep real examples (check on validation data that they beat uniform)",
    "condense": "learn synthetic examples",
    "bayes": "learn synthetic examples for a posterior",
    "infer": "infer a posterior from a coreset (`attar infer --sampler NAME`)",
}
NAME, TIME = 21, 7  #: widths of a line's first and last column

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help="A method to show with its equation, options and paper; or a family: select, condense, bayes or infer.",
        show_default=False,
    ),
]


def methods(name: Name = None) -> None:
    """List methods: what each does, when to choose it and how long it takes.

    Without a name, all methods, one line each; with the name of a family, those of it; with that of a method, its
    equation, options, paper and cost:

        attar methods
        attar methods select
        attar methods dm
    """
    if name is not None and name not in FAMILIES:
        _one(registry.find(name))
        return
    out.print("Start here: herding, dm, vbpc. `attar methods NAME` shows equation and options.")
    for family, about in FAMILIES.items():
        if name not in (None, family):
            continue
        out.print(f"{family}: {about}", style="bold", highlight=False)
        entries = registry.methods(family)
        for key in sorted(entries):
            out.print(_line(entries[key], min(out.width, 100)), highlight=False, soft_wrap=True)
    out.print("Time: ten per class of Fashion-MNIST, one core. * after `attar experts`, 20 min.")


def _line(entry: registry.Entry, width: int) -> str:
    """A method in one line: name, what it does, when to choose it, time; longer texts are wrapped."""
    time = entry.takes + ("*" if _experts(entry) else " ")
    room = max(21, width - NAME - TIME)
    text = wrap(f"{entry.about}; {entry.choose}", room - 1)
    first = f"{entry.name:<{NAME}}" if len(entry.name) < NAME else f"{entry.name}\n{'':{NAME}}"
    lines = [f"{first}{text[0]:<{room}}{time:>{TIME}}", *(f"{'':{NAME}}{line}" for line in text[1:])]
    return "\n".join(line.rstrip() for line in lines)


def _experts(entry: registry.Entry) -> bool:
    return entry.family in registry.REDUCERS and needs_of(entry.name).experts


def _one(entry: registry.Entry) -> None:
    out.print(f"{entry.name} ({entry.family}): {entry.about}; {entry.choose}", style="bold", highlight=False)
    time = entry.takes + (", after `attar experts`, once" if _experts(entry) else "")
    facts = {"learns": entry.learns, "cost": entry.cost, "time": time, "paper": entry.paper}
    for fact, text in facts.items():
        if text:
            out.print(
                fill(f"{fact}: {text}", out.width, initial_indent="  ", subsequent_indent="    "), highlight=False
            )
    out.print(f"\n{_plain(entry.build.__doc__ or '')}\n", highlight=False)
    table = Table("option", "type and range", "default", "what it is", box=None, padding=(0, 2, 0, 0))
    for key, kind, default, about in _options(entry.build):
        table.add_row(f"--{key.replace('_', '-')}", kind, default, about)
    out.print(table if table.rows else "It has no options.")


def _plain(docstring: str) -> str:
    """A docstring without reStructuredText markup; equations stay in LaTeX."""
    text = re.sub(r":math:`([^`]+)`", r"\1", inspect.cleandoc(docstring)).replace("``", "")
    found = []
    for paragraph in text.split("\n\n"):
        equation = paragraph.startswith(".. math::")
        lines = paragraph.removeprefix(".. math::").splitlines() if equation else [" ".join(paragraph.split())]
        indent = "    " if equation else ""
        found.append(
            "\n".join(
                fill(line.strip(), out.width, initial_indent=indent, subsequent_indent=2 * indent) for line in lines
            )
        )
    return "\n\n".join(found)


def _options(method: type[Method]) -> Iterator[tuple[str, str, str, str]]:
    """Name, type and range, default and description of every option."""
    usual = method.descent
    for name, info in registry.fields(method).items():
        yield name, describe(info), "" if info.default is None else str(info.default), info.description or ""
    if usual is not None:
        for name, info in registry.fields(Descent).items():
            value = getattr(usual, name)
            yield name, describe(info), "" if value is None else str(value), info.description or ""
