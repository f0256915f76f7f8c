"""What is printed while something runs, with and without a terminal, and text that comes from files."""

import re
import time
from io import StringIO

import pytest
from rich.console import Console

from attar.cli.console import Shown, plain
from tests.known import wait_until


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
