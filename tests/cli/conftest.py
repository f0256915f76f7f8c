import fcntl
import os
import pty
import struct
import termios
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import attar as library
from attar.cli import build, main
from attar.cli.console import err, out
from attar.cli.help import Command
from attar.core import registry
from attar.nets.train import Training
from tests.apart import Process


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Attar = Callable[..., Outcome]
MAIN = "from attar.cli import main; main()"  #: the program, in a process of its own


def command_of(words: list[str]) -> Command:
    """The command that a command line begins with, and the options that the other words bring."""
    command = build(words).get_command(None, words[0])
    assert command is not None
    return command


def commands_with(method: str) -> list[Command]:
    """All commands that have options of a method or sampler."""
    if registry.find(method).family == "infer":
        return [
            command_of([name, "--sampler", method]) for name in ("infer", "evaluate", "compare", "continual", "nas")
        ]
    return [command_of([name, "--method", method]) for name in ("reduce", "select")]


@pytest.fixture
def attar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Attar:
    """Run a command line in this process."""
    monkeypatch.setenv("COLUMNS", "200")
    for console in (out, err):
        monkeypatch.setattr(console, "_width", None)  # it may have been made when COLUMNS was something else

    def call(*words: object) -> Outcome:
        argv = [str(word) for word in words]
        monkeypatch.setattr("sys.argv", ["attar", *argv])
        with pytest.raises(SystemExit) as stop:
            main(argv)
        captured = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def coreset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with two random digits of each class."""
    path = tmp_path_factory.mktemp("coreset") / "u.safetensors"
    small = {"network": "convnet-d1w8", "training": Training(steps=30)}
    library.reduce(library.load("digits"), "uniform", per_class=2, **small).save(path)  # type: ignore[arg-type]
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A CSV file with two columns of numbers and two classes."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,label\n" + "".join(f"{k % 9},{k % 7},{'xy'[k % 2]}\n" for k in range(40)))
    return path


IN_TERMINAL = f"""
import os
for name in ("COLUMNS", "NO_COLOR"):
    os.environ.pop(name, None)
os.environ["TERM"] = "xterm"
{MAIN}
"""


def in_terminal(columns: int, *words: object) -> str:
    """What a command line writes to a terminal of this width, in a process of its own."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = Process(IN_TERMINAL, [str(word) for word in words], terminal=theirs)
    os.close(theirs)
    written = b""
    try:
        while part := os.read(ours, 65536):
            written += part
    except OSError:  # the terminal is gone when the process has ended
        process.wait(timeout=600)
    os.close(ours)
    assert process.returncode == 0, written.decode()
    return written.decode()
