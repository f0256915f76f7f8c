"""The command line, with the names of the Python API; one file per command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from errno import EDQUOT, ENOSPC, EROFS
from importlib.metadata import version
from typing import Annotated

import typer

from attar.cli import (
    board,
    check,
    compare,
    continual,
    dedup,
    demo,
    evaluate,
    experts,
    explore,
    export,
    import_,
    infer,
    methods,
    nas,
    reduce,
    report,
    select,
    show,
    submit,
)
from attar.cli.console import err, flushed, in_any_encoding, out, plain
from attar.cli.help import Command, Program
from attar.cli.interrupt import interruptible
from attar.cli.options import limited, method_in, sampler_in, with_options, with_training
from attar.core import registry, signals
from attar.core.errors import AttarError
from attar.core.files import REMEDIES
from attar.engine import keep_freed_memory
from attar.experts import SMALL

HELP = """Reduce a data set to a few examples, infer posteriors from them and evaluate both.

A first session, on data that needs no download:

    attar reduce digits --method dm --per-class 1 --steps 100 -o d.safetensors
    attar show d.safetensors
    attar evaluate d.safetensors digits
    attar report d.safetensors --data digits -o d.html

`attar methods` lists the methods, `attar COMMAND --help` the options of a command. Errors are one sentence with exit
code 2; add --debug to any command for the traceback.
"""
STATED = "Training that its authors recommend (give at least one)"
#: Commands that load data, whose memory can be limited.
LOADS = (
    "reduce",
    "select",
    "dedup",
    "experts",
    "infer",
    "evaluate",
    "compare",
    "continual",
    "nas",
    "report",
    "explore",
    "import",
    "submit",
)
FULL = (ENOSPC, EDQUOT, EROFS)
RESUMES = ("reduce", "experts", "compare", "continual", "nas", "report", "demo")  #: from what an interrupted one saved
OWN = "Training on the coreset (default: what the coreset was made for)"


def build(method: str | None = None, sampler: str | None = None) -> typer.Typer:
    """The application; `reduce` and `select` also have the options of this method, `infer` those of this sampler."""
    app = typer.Typer(
        name="attar",
        cls=Program,
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_program)
    selector = method if method in registry.methods("select") else None
    commands: dict[str, Callable[..., None]] = {
        "methods": methods.methods,
        "reduce": with_options(method)(reduce.reduce),
        "select": with_options(selector, "Training of the network that scores examples")(select.select),
        "dedup": dedup.dedup,
        "experts": with_training(SMALL.training)(experts.experts),
        "infer": with_options(sampler, OWN, defaults=False)(infer.infer),
        "evaluate": with_options(sampler, OWN, defaults=False)(evaluate.evaluate),
        "compare": with_options(sampler)(compare.compare),
        "continual": with_options(sampler, "Training of every stage")(continual.continual),
        "nas": with_options(sampler, "Training on proxy sets")(nas.nas),
        "report": report.report,
        "explore": explore.explore,
        "show": show.show,
        "export": export.export,
        "submit": submit.submit,
        "board": board.board,
        "import": with_options(sampler, STATED, defaults=False)(import_.import_),
        "check": check.check,
        "demo": demo.demo,
    }
    for name in LOADS:
        commands[name] = limited(commands[name])
    for name, command in commands.items():
        app.command(name, cls=Command)(interruptible(command, resumes=name in RESUMES))
    return app


def main(argv: list[str] | None = None) -> None:
    """Run a command; errors that the user can fix are printed as one sentence, with exit code 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    keep_freed_memory()
    in_any_encoding()
    try:
        try:
            with signals.raised():
                build(method_in(words), sampler_in(words))(words, prog_name="attar")
        finally:
            if problem := flushed():
                raise AttarError(problem)
    except (signals.Interrupted, SystemExit) as end:
        cause = _signal_before(end) or end
        if isinstance(cause, signals.Interrupted) and getattr(end, "code", 1) == 1:  # before or after the command
            sys.exit(128 + cause.number)
        raise
    except (AttarError, OSError) as error:
        if debug:
            raise
        if gone := _signal_before(error):  # the terminal is
            sys.exit(128 + gone.number)
        remedy = REMEDIES[error.errno] if isinstance(error, OSError) and error.errno in FULL else None
        _fail(f"Could not write ({error}): {remedy}." if remedy else str(error), code=2)
    except Exception as error:
        if debug:
            raise
        _fail(f"{type(error).__name__}: {error}. Internal error: rerun with --debug and report it.", code=1)


def _signal_before(error: BaseException) -> signals.Interrupted | None:
    """The signal after which this happened, if there was one."""
    before = error.__context__
    return before if before is None or isinstance(before, signals.Interrupted) else _signal_before(before)


def _fail(message: str, code: int) -> None:
    err.print(plain(f"attar: {message}"), style="red", highlight=False, soft_wrap=True)
    sys.exit(code)


def _version(asked: bool) -> None:
    if asked:
        out.print(f"attar {version('attar')}", highlight=False)
        raise typer.Exit


def _program(
    asked: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The program without a command."""
