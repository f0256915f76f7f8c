"""Options of commands that load DATA, and the loading itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from attar.cli.console import fetching, out, plain, warnings_shown
from attar.cli.signature import replaced
from attar.core.device import device_of
from attar.data import Split, Table, load

LOADING = "Loading DATA"  #: heading of these options in help

Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Label column of a table.",
        show_default="label, target, class or y",
        rich_help_panel=LOADING,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAME:KIND,…",
        help="Kinds of the columns of a table: numeric, boolean, ordinal, category, date, text or skip, or the values "
        "of an ordinal in order, as in 'size:small<medium<large'.",
        show_default="inferred",
        rich_help_panel=LOADING,
    ),
]
Resize = Annotated[
    str | None,
    typer.Option(
        metavar="N|HxW",
        help="Resize images to this height and width in pixels.",
        show_default="as they are",
        rich_help_panel=LOADING,
    ),
]
Scaling = Annotated[
    str | None,
    typer.Option(
        metavar="standard|zca|none",
        help="Input normalisation: standard (mean and deviation), ZCA whitening or none.",
        show_default="standard",
        rich_help_panel=LOADING,
    ),
]
Vectors = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|learnt",
        help="Word vectors for texts, in the text format of GloVe, or learnt from the training texts.",
        show_default="$ATTAR_DATA/glove for known data sets, else hashed vectors",
        rich_help_panel=LOADING,
    ),
]
Length = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Length of texts in words: longer ones are truncated, shorter ones padded.",
        show_default="the 95th percentile",
        rich_help_panel=LOADING,
    ),
]
Val = Annotated[
    float | None,
    typer.Option(
        metavar="FRACTION",
        help="Fraction of the training set to hold out for validation.",
        show_default="0.1",
        rich_help_panel=LOADING,
    ),
]
TestFile = Annotated[
    str | None,
    typer.Option(
        "--test",
        metavar="FILE",
        help="Separate test set: a name, file or folder, like DATA.",
        show_default="the one in DATA, or a held-out fifth of it",
        rich_help_panel=LOADING,
    ),
]


@dataclass(frozen=True)
class Loading:
    """How to load DATA; None where the user does not say."""

    target: Target = None
    scaling: Scaling = None
    val: Val = None
    test: TestFile = None
    vectors: Vectors = None
    length: Length = None
    columns: Columns = None
    resize: Resize = None

    def read(self, source: str, device: str = "cpu") -> Split:
        """Load DATA, as the user gave it, onto a device, showing progress if it is downloaded."""
        where = device_of(device)
        with warnings_shown(), fetching() as note:
            split = load(
                source if self.test is None else {"train": source, "test": self.test},
                val=0.1 if self.val is None else self.val,
                scaling=self.scaling or "standard",
                target=self.target,
                vectors=self.vectors,
                length=self.length,
                columns=self.columns,
                resize=self.resize,
                progress=note,
            )
        if isinstance(split.spec.element, Table):
            out.print(f"columns: {plain(str(split.spec.element))}", soft_wrap=True)
        return split.to(where)


USUAL = Loading()
FLAGS = tuple(inspect.signature(Loading, eval_str=True).parameters.values())


def with_loading(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``loading`` of a command by the flags that make one."""

    def call(**values: Any) -> None:
        loading = Loading(*(values.pop(flag.name) for flag in FLAGS))
        command(**values, loading=loading)

    return replaced(call, command, "loading", FLAGS)
