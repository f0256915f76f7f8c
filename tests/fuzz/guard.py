"""Run mutated inputs in a child process that is watched: crashes, hangs, memory, programs started, files opened.

An input is handled well if it is read, or refused by an ``AttarError`` of one line. Cases are numbered: the seed and
the number say all about a case, so that each can be repeated alone.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import IO, Any, NamedTuple

from attar.core import budget
from attar.core.errors import AttarError
from attar.data.formats.arrow import PROGRAM
from tests.fuzz import of_data, of_ours
from tests.fuzz.mutate import CANARY, one_bit
from tests.known import HANG, ROOT

TARGETS = {**of_data.TARGETS, **of_ours.TARGETS}
ROUND = [name for name, target in TARGETS.items() for _ in range(target.often)]  #: the targets of one round of cases

BUDGET = 64_000_000  #: bytes that files may take
SLACK = 100_000_000  #: bytes for the work beside: libraries loaded late, a page, a network
CPU = 60  #: seconds of processor time after which a case hangs
SENTENCE = 3000  #: characters of an error at most
READ, REFUSED, BAD = "read", "refused", "bad"


class Case(NamedTuple):
    """A mutated file: the name of the target, the file in its folder, and its content."""

    target: str
    file: str
    content: bytes
    refuse: bool = False  #: whether it must not be read: one bit of a file with checksums was flipped


class Outcome(NamedTuple):
    """What became of a case."""

    number: int
    target: str
    verdict: str
    said: str
    grown: int  #: bytes by which the process grew
    executed: bool = False  #: whether a program was started, or a file opened that a file named


@cache
def samples() -> Path:
    """The valid files of every target, and a file that none of them may open."""
    place = Path(tempfile.mkdtemp(prefix="attar-fuzz-"))
    (place / CANARY).write_text("must not be opened")
    for name, target in TARGETS.items():
        (place / name).mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.make(place / name)
    return place


def mutated(seed: int, number: int) -> Case:
    """The case of this seed and number."""
    name = ROUND[number % len(ROUND)]
    chance, target = Random(f"{seed} {number}"), TARGETS[name]
    files = sorted(path for pattern in target.files for path in (samples() / name).glob(pattern))
    file = chance.choice(files)
    mutator = chance.choice(list(target.mutators))
    content = mutator(file.read_bytes(), chance)
    return Case(name, file.relative_to(samples() / name).as_posix(), content, target.sealed and mutator is one_bit)


def run(cases: Iterable[tuple[int, Case]]) -> Iterator[Outcome]:
    """The outcome of every case; after a crash, the next child goes on with the case after it."""
    todo = iter(cases)
    while True:
        lead = next(todo, None)
        if lead is None:
            return
        yield from _child(lead, todo)


def _child(lead: tuple[int, Case], todo: Iterator[tuple[int, Case]]) -> Iterator[Outcome]:
    """Cases in one child, until there are no more or it ends."""
    ask_read, ask_write = os.pipe()
    tell_read, tell_write = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(ask_write)
        os.close(tell_read)
        _serve(os.fdopen(ask_read, "rb"), os.fdopen(tell_write, "w"))
    os.close(ask_read)
    os.close(tell_write)
    ask, tell = os.fdopen(ask_write, "wb", buffering=0), os.fdopen(tell_read)
    case: tuple[int, Case] | None = lead
    try:
        while case is not None:
            ask.write(_packed(*case))
            line = tell.readline() if select.select([tell], [], [], HANG)[0] else ""
            if not line:
                os.kill(process, signal.SIGKILL)
                _, status = os.waitpid(process, 0)
                process = 0
                ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {status}"
                hung = ended in (f"signal {signal.SIGPROF}", f"signal {signal.SIGKILL}")
                yield Outcome(case[0], case[1].target, BAD, "hung" if hung else f"the process ended with {ended}", 0)
                return
            yield Outcome(*json.loads(line))
            case = next(todo, None)
    finally:
        ask.close()
        tell.close()
        if process:
            os.waitpid(process, 0)


def _packed(number: int, case: Case) -> bytes:
    head = json.dumps([number, case.target, case.file, case.refuse, len(case.content)]).encode()
    return head + b"\n" + case.content


def _serve(ask: IO[bytes], tell: IO[str]) -> None:
    """The child: read cases and say what became of them."""
    os.environ[budget.VARIABLE] = str(BUDGET)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.disable()  # pytest turns it on
    warnings.simplefilter("ignore")
    place = Path(tempfile.mkdtemp(prefix="attar-fuzz-", dir=samples()))
    watch = _Watch(place)
    sys.addaudithook(watch)
    code = 0
    try:
        while head := ask.readline():
            number, target, file, refuse, size = json.loads(head)
            outcome = _one(number, Case(target, file, ask.read(size), refuse), place, watch)
            tell.write(json.dumps(outcome) + "\n")
            tell.flush()
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        watch.on = False
        shutil.rmtree(place, ignore_errors=True)
        os._exit(code)


def _one(number: int, case: Case, place: Path, watch: _Watch) -> Outcome:
    folder = place / case.target
    shutil.copytree(samples() / case.target, folder)
    (folder / case.file).write_bytes(case.content)
    before = _peak(reset=True)
    signal.setitimer(signal.ITIMER_PROF, CPU)
    watch.on, watch.seen = True, []
    try:
        TARGETS[case.target].read(folder)
        verdict, said = (BAD, "a flipped bit was not found") if case.refuse else (READ, "")
    except AttarError as error:
        said = str(error)
        lines = "\n" in said or not said.strip() or len(said) > SENTENCE
        verdict, said = (BAD, f"not one sentence: {said[:500]!r}") if lines else (REFUSED, said[:300])
    except BaseException:
        verdict, said = BAD, traceback.format_exc()[-3000:]
    finally:
        watch.on = False
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = _peak() - before
    if watch.seen:
        verdict, said = BAD, f"{watch.seen[:5]}; {said}"
    elif grown > BUDGET + SLACK:
        verdict, said = BAD, f"took {grown:,} bytes; {said}"
    shutil.rmtree(folder, ignore_errors=True)
    return Outcome(number, case.target, verdict, said, grown, bool(watch.seen))


def _peak(reset: bool = False) -> int:
    """The most memory that this process held since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


class _Watch:
    """An audit hook: notes programs, connections, and files opened that are neither ours nor the case's."""

    FORBIDDEN = (
        "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "socket.connect", "socket.getaddrinfo",
        "pickle.find_class", "urllib.Request",
    )  # fmt: skip

    def __init__(self, place: Path) -> None:
        self.on, self.seen = False, list[str]()
        libraries = [sys.prefix, sys.base_prefix, *(path for path in sys.path if path)]
        self.allowed = tuple(
            os.path.realpath(path) for path in (place, ROOT / "src", "/proc", "/sys", "/dev/null", *libraries)
        )

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in self.FORBIDDEN:
            self.seen.append(f"{event} {arguments!r}"[:300])
        elif event == "subprocess.Popen" and str(PROGRAM) not in arguments[1]:
            self.seen.append(f"{event} {arguments[:2]!r}"[:300])
        elif event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith(self.allowed):
                self.seen.append(f"open {path!r}")


def until(seconds: float, seed: int, first: int = 0) -> Iterator[tuple[int, Case]]:
    """Fresh cases, until so many seconds have passed."""
    end, number = time.monotonic() + seconds, first
    while time.monotonic() < end:
        yield number, mutated(seed, number)
        number += 1
