"""`attar recommend`: which method to take for a data set."""

from __future__ import annotations

from typing import Annotated

import typer

from attar.cli.arguments import (
    Budget,
    Device,
    NetworkName,
    Source,
    first,
)
from attar.cli.console import out, plain, working
from attar.cli.loading import USUAL, Loading
from attar.recommend import GOALS
from attar.recommend import recommend as find
from attar.select.budget import BALANCED

Size = Annotated[
    int, typer.Option("--per-class", "-n", min=1, metavar="N", help="Examples per class to keep or learn.")
]
Minutes = Annotated[
    float | None,
    typer.Option(metavar="M", help="Longest time of the reduction on this machine.", show_default="no limit"),
]
Goal = Annotated[
    str,
    typer.Option(
        metavar="|".join(GOALS),
        help="What counts: accuracy; calibration (lowest NLL); privacy (no rows of the data); or speed (the cheapest "
        "within two points of the best accuracy).",
    ),
]


def recommend(
    data: Source,
    per_class: Size = 10,
    minutes: Minutes = None,
    goal: Goal = "accuracy",
    budget: Budget = None,
    network: NetworkName = None,
    device: Device = "cpu",
    loading: Loading = USUAL,
) -> None:
    """Recommend a method for a data set, with what to expect of it and why, and print the command.

    The answer comes from committed results on data of the same kind and about the same size, and from the time of a few
    steps on this machine; nothing is reduced yet:

        attar recommend digits --per-class 10
        attar recommend table.csv --target species --minutes 2
        attar recommend mnist --goal calibration

    For data that is like nothing measured, it says so and names a safe choice. `attar reduce` without --method does
    what this command says.
    """
    split = loading.read(data, device)
    with working("timing a few steps"):
        found = find(
            split, per_class=per_class, minutes=minutes, goal=goal, budget=first(budget, BALANCED), network=network
        )
        said = found.lines()
    given = {"network": network, **vars(loading), "device": None if device == "cpu" else device}
    flags = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
    for line in (*said, "", f"Run: {found.command(data, flags)}"):
        out.print(plain(line), soft_wrap=True, highlight=False)
