"""The command line: the same words as the Python API."""

from __future__ import annotations

import sys

import typer

from attar.cli import compare, demo, experts, look, make, pick, questions, report
from attar.cli.console import err, interruptible
from attar.cli.options import method_in, sampler_in, with_options, with_training
from attar.core import registry
from attar.core.errors import AttarError
from attar.engine import keep_freed_memory
from attar.experts import SMALL

HELP = """Distil a data set into a few examples, keep its posterior, and say honestly how well it went.

A whole way through, on data that needs no download:

    attar reduce digits --method dc --per-class 1 -o d.safetensors

    attar show d.safetensors

    attar evaluate d.safetensors digits

    attar report d.safetensors --data digits -o d.html

Bad input ends with one sentence and exit code 2; add --debug to any command for the whole traceback.
"""


def build(method: str | None = None, sampler: str | None = None) -> typer.Typer:
    """The application; `reduce` and `select` have this method's options beside their own, `infer` this sampler's."""
    app = typer.Typer(
        name="attar",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.command("methods")(look.methods)
    app.command("reduce")(interruptible(with_options(method)(make.reduce)))
    selector = method if method in registry.methods("select") else None
    app.command("select")(with_options(selector, "Training of what looks at the examples")(pick.select))
    app.command("experts")(interruptible(with_training(SMALL.training)(experts.experts)))
    app.command("infer")(with_options(sampler)(make.infer))
    app.command("evaluate")(with_options(sampler)(questions.evaluate))
    app.command("compare")(interruptible(with_options(sampler)(compare.compare)))
    app.command("report")(interruptible(report.report))
    app.command("show")(look.show)
    app.command("export")(make.export)
    app.command("demo")(interruptible(demo.demo))
    return app


def main(argv: list[str] | None = None) -> None:
    """Run a command line; errors that the user can mend are one sentence, and exit with 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    keep_freed_memory()
    try:
        build(method_in(words), sampler_in(words))(words, prog_name="attar")
    except (AttarError, OSError) as error:
        if debug:
            raise
        err.print(f"attar: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except Exception as error:
        if debug:
            raise
        said = f"attar: {type(error).__name__}: {error}. Nobody thought of this: --debug shows where."
        err.print(said, style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
