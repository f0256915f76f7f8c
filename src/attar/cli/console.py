"""What a user sees while a command runs: progress, warnings and interruptions."""

from __future__ import annotations

import codecs
import os
import shlex
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.progress import TimeRemainingColumn as TimeLeft
from rich.segment import Segment
from rich.text import Text

from attar.core.text import duration

if TYPE_CHECKING:  # the program itself loads without PyTorch
    from attar.condense.driver import Step
    from attar.condense.observers import Observer
    from attar.engine import Engine
    from attar.plan import Plan
    from attar.select.run import Decided
    from attar.study.grid import Progress as Part

#: What is written where an encoding lacks a character; any other becomes its escape.
ASCII = {"→": "->", "…": "...", "×": "x", "±": "+/-", "≥": ">=", "≤": "<=", "–": "-", "—": "-", "█": "#", "▀": "#"}


class Safe(Console):
    """A console for text that may come from a file: control characters are escaped, whatever is printed.

    Without a reader (a closed pipe), what is printed is dropped and the command runs on.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of what is printed; those of rich itself, such as moves of the cursor, are left alone."""
        for part in super().render(renderable, options):
            if part.control or part.text.isprintable():
                yield part
            else:
                yield Segment("\n".join(map(plain, part.text.split("\n"))), part.style)

    def on_broken_pipe(self) -> None:
        """Go on in silence."""
        self.quiet = True
        discard(self.file)


out = Safe(markup=False)
err = Safe(stderr=True, markup=False)


def in_any_encoding() -> None:
    """Let standard output and error take every character, whatever their encoding."""
    codecs.register_error("attar", _written)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="attar")


def _written(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(ASCII.get(c) or ascii(c)[1:-1] for c in lacking), error.end


def flushed() -> str:
    """Write out what was printed; the reason if that failed, but nothing if only the reader is gone."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            discard(stream)
            if not isinstance(error, BrokenPipeError):
                return f"Could not write ({error}): free space, or choose another place."
    return ""


def discard(stream: IO[str]) -> None:
    """Send what is still to be written to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Print the warnings of a block when it is done, one line each and each once."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in said):
        err.print(f"warning: {message}", style="yellow", markup=False)


def plain(text: str) -> str:
    """Text from a file or a user, with control characters escaped, so that the terminal does not interpret them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class _Count(MofNCompleteColumn):
    """Steps done, if they can be counted."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class _Time(TimeLeft):
    """Time left, or time so far if steps cannot be counted."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.elapsed or 0:.0f} s") if task.total is None else super().render(task)


class _Rate(ProgressColumn):
    """Steps per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "", style="dim")


class _Note(ProgressColumn):
    """The note of the task."""

    def render(self, task: Task) -> Text:
        return Text(str(task.fields.get("note", "")), style="cyan")


class Shown(Progress):
    """Progress bars in a terminal; elsewhere plain lines: at a task's start, every ``every`` seconds and at its end."""

    def __init__(self, console: Console, every: float = 30.0) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            _Count(),
            _Rate(),
            _Time(compact=True, elapsed_when_finished=True),
            _Note(),
        )
        super().__init__(
            *columns, console=console, transient=True, disable=not console.is_terminal, speed_estimate_period=600
        )
        self._every, self._over = every, threading.Event()
        self._clock: threading.Thread | None = None
        self._said: dict[TaskID, tuple[float, str]] = {}  #: time and text of a task's last line

    def start(self) -> None:
        """Start to show tasks."""
        super().start()
        if self.disable and self._clock is None:
            self._clock = threading.Thread(target=self._tick, daemon=True)
            self._clock.start()

    def stop(self) -> None:
        """Stop showing tasks."""
        super().stop()
        self._over.set()
        if self._clock is not None:
            self._clock.join()
        for task in self.tasks:
            self._end(task)

    def remove_task(self, task_id: TaskID) -> None:
        """Remove a finished task."""
        for task in self.tasks:
            if task.id == task_id:
                self._end(task)
        super().remove_task(task_id)

    def say(self, task_id: TaskID) -> None:
        """Without a terminal, print a line about a task now."""
        for task in self.tasks:
            if self.disable and task.id == task_id:
                self._say(task, _line(task))

    def _tick(self) -> None:
        while not self._over.wait(min(0.5, self._every)):
            for task in self.tasks:
                if task.id not in self._said:
                    self._say(task, _line(task))
                elif time.monotonic() - self._said[task.id][0] >= self._every:
                    self._say(task, f"{_line(task)}, {duration(task.elapsed or 0)} so far")

    def _end(self, task: Task) -> None:
        if self.disable and task.completed and self._said.get(task.id, (0.0, ""))[1] != _line(task):
            self._say(task, _line(task))

    def _say(self, task: Task, line: str) -> None:
        self._said[task.id] = time.monotonic(), line
        self.console.print(line, soft_wrap=True, highlight=False)


def _line(task: Task) -> str:
    """A task in one line: progress, note and time left."""
    counted = f"{task.completed:,.0f} of {task.total:,.0f} {task.fields.get('unit', '')}".strip() if task.total else ""
    left = f"about {duration(task.time_remaining)} left" if task.time_remaining and not task.finished else ""
    parts = [part for part in (counted, str(task.fields.get("note", "")), left) if part]
    return plain(": ".join(part for part in (task.description.strip(), ", ".join(parts)) if part))


def command() -> str:
    """The current command line, quoted for a shell."""
    return " ".join(["attar", *map(_quoted, sys.argv[1:])])


def _quoted(word: str) -> str:
    try:
        word.encode()
    except UnicodeEncodeError:  # bytes that are no text, as names of files may have
        text = "".join(chr(c) if 32 <= c < 127 and c not in b"'\\" else f"\\x{c:02x}" for c in os.fsencode(word))
        return f"$'{text}'"
    return shlex.quote(word)


def bar() -> Shown:
    """Progress on standard error; bars disappear when done."""
    return Shown(err)


@contextmanager
def working(description: str) -> Iterator[Callable[[str], None]]:
    """Show that something runs without countable steps; call the yielded function with a note."""
    with bar() as shown:
        task = shown.add_task(description, total=None)
        yield lambda note: shown.update(task, note=note)


@contextmanager
def fetching() -> Iterator[Callable[[str, int, int | None], None]]:
    """Yield a function to call during downloads with the file name, the bytes so far and the total bytes."""
    shown = bar()  # starts with the first byte: nothing is shown for data on disk
    tasks: dict[str, TaskID] = {}

    def note(name: str, done: int, total: int | None) -> None:
        shown.start()
        if name not in tasks:
            tasks[name] = shown.add_task(f"download {name}", unit="bytes")
        shown.update(tasks[name], completed=done, total=total)

    try:
        yield note
    finally:
        shown.stop()


def following(shown: Shown) -> Callable[[Part], None]:
    """A watcher of a study: a bar per stage in a terminal, otherwise a line per finished part."""
    tasks = {"runs": shown.add_task("runs", total=None)}

    def watch(part: Part) -> None:
        if part.stage not in tasks:
            tasks[part.stage] = shown.add_task(part.stage)
        shown.update(tasks[part.stage], total=part.total, completed=part.done, note=part.line)
        shown.say(tasks[part.stage])

    return watch


def step_observers(shown: Progress, engine: Engine) -> list[Observer]:
    """What shows the steps of methods in a grid that runs in this process."""
    return [partial(progress, shown=shown, description="  steps")] if engine.here else []


def progress(steps: Iterable[Step], shown: Progress, description: str) -> Iterator[Step]:
    """An observer that shows the loss of a condensation and, if there is one, the validation score."""
    task = shown.add_task(description, total=None, unit="steps")
    for step in steps:
        note = f"loss {step.loss:.4g}"
        if "validation" in step.metrics:
            note += f", validation {step.metrics['validation']:.3f}"
        shown.update(task, total=step.total, completed=step.number, note=note)
        yield step
    shown.remove_task(task)


def print_forecast(decided: Plan | Decided, cost: str) -> None:
    """Print memory and time that are forecast; ``cost`` says what they are spent on."""
    with working("rehearsing on a part of the data"):
        memory, seconds = decided.memory(), decided.seconds()
    out.print(f"estimated memory, without the libraries: about {memory / 1e6:.0f} MB")
    out.print(f"estimated time: about {duration(seconds)} (cost: {cost})", soft_wrap=True)
