"""What is printed while something runs, with and without a terminal, and text that comes from files."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

import pytest
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attar.cli.console import Safe, Shown, in_any_encoding, plain
from tests.cli.conftest import MAIN
from tests.known import HANG, python, wait_until


def lines(file: StringIO) -> list[str]:
    return file.getvalue().splitlines()


def test_without_a_terminal_progress_is_plain_lines_at_the_start_now_and_then_and_at_the_end() -> None:
    file = StringIO()
    with Shown(Console(file=file), every=0.05) as shown:
        task = shown.add_task("dm", total=100, completed=1, unit="steps", note="loss 2")
        wait_until(lambda: len(lines(file)) >= 3)
        shown.update(task, completed=100, note="loss 1")
    found = lines(file)
    assert found[0] == "dm: 1 of 100 steps, loss 2"
    assert re.fullmatch(r"dm: 1 of 100 steps, loss 2, (a second|\d+ \w+) so far", found[1])
    assert found[-1].startswith("dm: 100 of 100 steps, loss 1")
    assert "\x1b" not in file.getvalue()


def test_the_last_state_of_a_task_is_said_before_it_is_forgotten() -> None:
    file = StringIO()
    shown = Shown(Console(file=file))  # not started, so that no line comes by the clock
    task = shown.add_task("dm", total=3)
    shown.update(task, completed=3)
    shown.remove_task(task)
    shown.add_task("nothing was done", total=3)
    shown.stop()
    assert lines(file) == ["dm: 3 of 3"]


def test_the_time_left_is_said_once_it_is_known() -> None:
    file = StringIO()
    with Shown(Console(file=file), every=1000) as shown:
        task = shown.add_task("dm", total=1000)
        for number in range(1, 4):
            shown.update(task, completed=number)
            time.sleep(0.01)
    assert "left" in lines(file)[-1]


def test_in_a_terminal_it_is_a_bar() -> None:
    file = StringIO()
    with Shown(Console(file=file, force_terminal=True, width=120), every=0.01) as shown:
        shown.update(shown.add_task("dm", total=3), completed=2)
        shown.refresh()
    assert "━" in file.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tulip, naïve 花", "tulip, naïve 花"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\nb\tc\x7f", "a\\nb\\tc\\x7f"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
    ],
)
def test_control_characters_of_files_do_not_reach_the_terminal(text: str, shown: str) -> None:
    assert plain(text) == shown


HOSTILE = "\x1b[2Jcleared \x1b]0;title\x07 \u202eright to left \x9b1m"


@pytest.mark.parametrize("show", [str, Text, lambda text: Table(text), lambda text: Padding(text, 1)])
def test_control_and_bidirectional_characters_are_escaped_whatever_is_printed(show: Callable[[str], Any]) -> None:
    console = Safe(file=StringIO(), width=200, force_terminal=True, markup=False)
    console.print(show(HOSTILE), style="bold")
    written = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())  # type: ignore[attr-defined]
    assert "cleared" in written
    assert "\\x1b[2J" in written
    assert all(c.isprintable() or c == "\n" for c in written)


# Help is printed without PyTorch, which takes seconds to load.
@pytest.mark.parametrize(("word", "where"), [("--help", ">&-"), ("methods", "2>&- >&-"), ("--help", "| cat")])
def test_output_that_nobody_takes_is_no_traceback(word: str, where: str) -> None:
    plain_columns = os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": "20"}
    line = f"{shlex.quote(sys.executable)} -m attar.cli {word} {where}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], env=plain_columns, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


FULL = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1)\n"
UNREAD = "import os; ours, theirs = os.pipe(); os.close(ours); os.dup2(theirs, 1)\n"


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [(FULL, 2, "attar: Could not write ([Errno 28]"), (UNREAD, 0, "")],
    ids=["full", "unread"],
)
def test_a_table_that_cannot_be_written_is_told_and_one_that_nobody_reads_is_not(
    place: str, code: int, said: str
) -> None:
    process = python(place + MAIN, "methods")
    _, err = process.communicate(timeout=HANG)
    assert process.returncode == code, err
    assert err.startswith(said)
    assert len(err.splitlines()) == bool(said)


def test_characters_that_an_encoding_lacks_are_written_in_others(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = BytesIO()
    stream = TextIOWrapper(raw, encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    in_any_encoding()
    print("a → b, 3×3 ± é \udc80", file=stream, flush=True)
    assert raw.getvalue() == b"a -> b, 3x3 +/- \\xe9 \\udc80\n"
    stream.detach()
