"""The program itself: version, help, errors."""

import re
import signal
from importlib.metadata import version

import pytest

from attar.cli import build, main
from attar.cli.help import summary
from attar.continual.spec import ContinualSpec
from attar.core import registry
from attar.study import StudySpec
from tests.cli.conftest import Attar, command_of, commands_with
from tests.known import new_python

COMMANDS = {name: command_of([name]) for name in build().list_commands(None)}


def test_the_version_is_that_of_the_package(attar: Attar) -> None:
    done = attar("--version")
    assert (done.code, done.out) == (0, f"attar {version('attar')}\n")


def test_the_program_without_a_command_and_with_h_lists_the_commands(attar: Attar) -> None:
    done = attar("-h")
    assert done.code == 0
    assert done.out == attar("--help").out
    assert "attar reduce digits" in done.out
    assert all(f"\n  {name} " in done.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_is_plain_and_fits_80_columns(
    name: str, attar: Attar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = attar(name, "-h")
    assert done.code == 0
    assert done.out == attar(name, "--help").out
    assert max(map(len, done.out.splitlines())) <= 80
    assert not re.search(r"[{}]|\[\[|\.{4}", done.out.splitlines()[0])  # the line of usage
    assert not re.search(r"<\w+>|\{\w+\}|x>=|x<=|\d{6,}|\u00a0|\u2011", done.out)


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name not in ("methods", "continual", "nas", "check", "demo")]
)
def test_every_option_has_a_sentence_and_the_command_an_example(name: str) -> None:
    command = COMMANDS[name]
    assert f"\n    attar {name} " in command.help
    for param in command.params:
        assert re.fullmatch(r"[A-Z].{8,}\.(  \[.*\])?", param.help), param.opts


@pytest.mark.parametrize("name", registry.methods())
def test_every_option_of_a_method_has_a_sentence(name: str) -> None:
    for param in (param for command in commands_with(name) for param in command.params):
        assert param.help, param.opts


@pytest.mark.parametrize("command", ["reduce", "select", "experts", "compare", "continual", "nas", "recommend"])
def test_every_command_that_loads_data_can_be_told_how(command: str) -> None:
    flags = {flag for param in COMMANDS[command].params for flag in param.opts}
    assert {"--target", "--scaling", "--val", "--test", "--device"} <= flags


def test_every_command_that_computes_takes_a_device() -> None:
    without = {name for name, command in COMMANDS.items() if not any("--device" in p.opts for p in command.params)}
    assert without == {"board", "check", "dedup", "export", "import", "methods", "show"}


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_a_command_on_a_coreset_does_not_ask_for_what_its_file_says(command: str) -> None:
    flags = {flag for param in COMMANDS[command].params for flag in param.opts}
    assert {"--target", "--test", "--device"} <= flags
    assert not {"--scaling", "--val"} & flags


def test_draws_mean_the_same_everywhere() -> None:
    found = [p for name in ("infer", "evaluate", "report") for p in COMMANDS[name].params if p.name == "draws"]
    assert {(p.help, p.default) for p in found} == {(found[0].help, 5)}
    assert StudySpec().draws == ContinualSpec().draws == 5
    assert len({p.help for name in ("compare", "continual") for p in COMMANDS[name].params if p.name == "draws"}) == 1


def test_an_internal_error_is_one_line_that_asks_for_a_report(attar: Attar, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(words: list[str]) -> None:
        raise ZeroDivisionError("[/red] by \x1b[31mzero")

    monkeypatch.setattr("attar.cli.build", broken)
    done = attar("methods")
    assert done.code == 1
    said = "ZeroDivisionError: [/red] by \\x1b[31mzero. Internal error: rerun with --debug and report it."
    assert done.err == f"attar: {said}\n"
    with pytest.raises(ZeroDivisionError, match="by"):
        main(["methods", "--debug"])


@pytest.mark.parametrize("number", [2, 15])
def test_a_signal_before_the_command_begins_ends_the_program_without_a_traceback(
    number: int, attar: Attar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attar.cli.build", lambda *names: signal.raise_signal(number))
    assert attar("show", "a.safetensors").code == 128 + number


def test_help_of_the_program_loads_neither_pytorch_nor_the_commands() -> None:
    code = """
import sys
from attar.cli import main
try:
    main(["--help"])
except SystemExit:
    print(*sys.modules)
"""
    loaded = new_python(code).communicate()[0].splitlines()[-1].split()
    assert not {"torch", "numpy", "attar.cli.reduce", "attar.data"} & set(loaded)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_the_program_has_the_first_sentence_of_every_command(name: str) -> None:
    assert (COMMANDS[name].help or "").replace("\n", " ").startswith(summary(name))
