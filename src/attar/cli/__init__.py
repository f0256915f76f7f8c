"""The command line, with the names of the Python API; one file per command."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from errno import EDQUOT, ENOSPC, EROFS
from functools import partial
from importlib import import_module
from importlib.metadata import version
from keyword import iskeyword
from typing import Annotated

import typer
from typer.main import get_command

from attar.cli.console import err, flushed, in_any_encoding, out, plain
from attar.cli.help import Command, Program
from attar.cli.interrupt import interruptible
from attar.core import signals
from attar.core.errors import REMEDIES, AttarError

HELP = """Reduce a data set to a few examples, infer posteriors from them and evaluate both.

A first session, on data that needs no download:

    attar reduce digits --method dm --per-class 1 --steps 100 -o d.safetensors
    attar show d.safetensors
    attar evaluate d.safetensors digits
    attar report d.safetensors --data digits -o d.html

`attar recommend DATA` recommends a method, `attar methods` lists them all, `attar COMMAND --help` shows the
options of a command. Errors are one sentence with exit code 2; add --debug to any command for the traceback.
"""
#: Every command, in the order of the help. It is the function of its name in the file of its name, which is loaded when
#: the command is used: help of the program does not wait for PyTorch.
COMMANDS = (
    "methods",
    "recommend",
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
    "show",
    "export",
    "submit",
    "board",
    "import",
    "check",
    "demo",
)
#: Commands that load data, whose memory can be limited.
LOADS = (
    "recommend",
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
RESUMES = ("reduce", "experts", "compare", "continual", "nas", "report", "demo")  #: from what an interrupted one saved
OWN = "Training on the coreset (default: the coreset's recommended settings)"
#: Commands with options of training, and the heading of these in help.
TRAINING = {
    "reduce": "Training on the coreset",
    "select": "Training of the network that scores examples",
    "infer": OWN,
    "evaluate": OWN,
    "compare": "Training on the coreset",
    "continual": "Training of every stage",
    "nas": "Training on proxy sets",
    "import": "Training that its authors recommend (give at least one)",
}
#: Commands that run many jobs, with options of where.
GRIDS = ("select", "experts", "compare", "continual", "nas", "infer")
UNSET = ("infer", "evaluate", "import")  #: commands whose training has no default of its own
FULL = (ENOSPC, EDQUOT, EROFS)


def build(words: Sequence[str] = ()) -> Program:
    """The program; `reduce` and `select` also have the options of the method in these words, others of the sampler."""
    app = typer.Typer(
        name="attar",
        cls=Program,
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_program)
    program = get_command(app)
    assert isinstance(program, Program)
    program.offer(COMMANDS, partial(_command, words=list(words)))
    return program


def _command(name: str, words: list[str]) -> Command:
    """A command with the options of what these words name."""
    from attar.cli.arguments import TABLE
    from attar.cli.engine import with_engine
    from attar.cli.loading import with_loading
    from attar.cli.options import limited, method_in, sampler_in, with_options, with_training
    from attar.engine import keep_freed_memory
    from attar.experts import SMALL

    keep_freed_memory()
    own = f"{name}_" if iskeyword(name) else name
    run: Callable[..., None] = getattr(import_module(f"attar.cli.{own}"), own)
    if name in GRIDS:
        run = with_engine(run, all_cores=name == "experts", panel=TABLE if name == "select" else None)
    if name in TRAINING:
        chosen = method_in(words, name) if name in ("reduce", "select") else sampler_in(words)
        run = with_options(chosen, TRAINING[name], defaults=name not in UNSET)(run)
    if name == "experts":
        run = with_training(SMALL.training)(run)
    if "loading" in inspect.signature(run).parameters:
        run = with_loading(run)
    if name in LOADS:
        run = limited(run)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=Command)(interruptible(run, resumes=name in RESUMES))
    command = get_command(app)
    assert isinstance(command, Command)
    return command


def main(argv: list[str] | None = None) -> None:
    """Run a command; errors that the user can fix are printed as one sentence, with exit code 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    in_any_encoding()
    try:
        try:
            with signals.raised():
                build(words)(words, prog_name="attar")
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
