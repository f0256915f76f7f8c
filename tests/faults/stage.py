"""Runs scenes in forked children of one process that has loaded all libraries, so that a case costs little."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import torch

from attar.core.signals import Interrupted
from tests.faults.scenes import SCENES, archive, copied, left, prepare, quiet, state
from tests.faults.shim import KILLED, Fault, Shim
from tests.known import HANG, ROOT

SERVER = """
import http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments):
        super().__init__(*arguments, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


FINE = (0, 2, 129, 130, 143, KILLED)  #: exit codes after a fault or a signal: done, a sentence, or stopped


class Ended(NamedTuple):
    """How a child ended."""

    code: int  #: negative after a signal
    said: str
    operations: list[str]


class Ready(NamedTuple):
    """A scene that can be run: the folder as it is before, and what is there after an undisturbed run."""

    name: str
    before: Path
    after: dict[str, Any]
    operations: list[str]
    seconds: float


def forked(work: Callable[[], object], out: Path) -> int:
    """Start ``work`` in a child of its own session, with its output in a file; returns the process."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.setsid()
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for place in (1, 2):
            os.dup2(file, place)
        sys.stdout, sys.stderr = (open(place, "w", closefd=False) for place in (1, 2))  # noqa: SIM115 (until the end)
        for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(stop, signal.default_int_handler if stop == signal.SIGINT else signal.SIG_DFL)
        quiet()
        work()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except KeyboardInterrupt as stop:  # before the command began, or after it ended; Python itself ends so
        code = 1 if isinstance(stop, Interrupted) else 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ended(process: int) -> int:
    """Wait for a child, for a limited time; its exit code, negative after a signal."""
    done = over(process, HANG)
    if not done:
        os.killpg(process, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert done, "a child hung"
    return status


def over(process: int, seconds: float) -> bool:
    """Whether a child ends within so many seconds; returns as soon as it does."""
    handle = os.pidfd_open(process)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def disturbed(name: str, folder: Path, fault: Fault = Fault()) -> Ended:
    """Run a scene in a folder, with a fault."""
    counts = folder.with_name(folder.name + ".count")
    counts.unlink(missing_ok=True)

    def work() -> None:
        os.chdir(folder)
        shim = Shim(folder, fault)
        shim.install()
        try:
            SCENES[name].run()
        finally:
            written = os.open(counts, os.O_WRONLY | os.O_CREAT)
            os.write(written, json.dumps(shim.done).encode())

    out = folder.with_name(folder.name + ".out")
    code = ended(forked(work, out))
    done = json.loads(counts.read_text()) if counts.exists() else []
    return Ended(code, out.read_text(errors="replace"), done)


def ready(name: str, place: Path) -> Ready:
    """Prepare a scene, run it undisturbed, and again from the same state, which must give the same."""
    before = place / f"{name} before"
    out = place / "preparing.out"
    code = ended(forked(lambda: prepare(SCENES[name], before), out))
    assert code == 0, out.read_text()
    found = []
    for _ in range(2):
        begun = time.monotonic()
        folder = copied(before, place / name)
        done = disturbed(name, folder)
        assert done.code == 0, done.said
        found.append((state(folder), done.operations))
    assert found[0][0] == found[1][0], "two undisturbed runs differ"
    assert left(folder) == [], left(folder)
    return Ready(name, before, found[0][0], found[0][1], time.monotonic() - begun)


def problem(scene: Ready, folder: Path, first: Ended) -> str:
    """What is wrong after a fault and another, undisturbed run; nothing if all is well. Names no place outside."""
    return _problem(scene, folder, first).replace(f"{ROOT}/", "").replace(f"{folder.parent}/", "")


def _problem(scene: Ready, folder: Path, first: Ended) -> str:
    if first.code not in FINE and first.code >= 0:
        return f"ended with {first.code}: {first.said[-1500:]}"
    if "Traceback" in first.said:
        return f"traceback: {first.said[-1500:]}"
    if lost := _lost(scene, folder):
        return f"lost {lost}"
    again = disturbed(scene.name, folder)
    if again.code != 0:
        return f"cannot be resumed, {again.code}: {again.said[-1500:]}"
    now = state(folder)
    if now != scene.after:
        names = [name for name in {*now, *scene.after} if now.get(name) != scene.after.get(name)]
        return f"ends in other results: {sorted(names)}"
    return f"left {left(folder)}" if left(folder) else ""


def _lost(scene: Ready, folder: Path) -> list[str]:
    """Files from before that are neither as they were nor as the finished command leaves them."""
    was, now = state(scene.before), state(folder)
    keep = SCENES[scene.name].keep
    kept = [name for name in was if any(fnmatch(name, pattern) for pattern in keep)]
    return [name for name in kept if now.get(name) not in (was[name], scene.after.get(name))]


@contextmanager
def stage() -> Iterator[Path]:
    """A folder for scenes, with a server for the download; libraries are loaded before the first fork."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="attar-faults-") as made:
        place = Path(made)
        (place / "site").mkdir()
        (place / "site" / "box.tar").write_bytes(archive())
        pipe = subprocess.PIPE
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, place / "site"], stdout=pipe, stderr=subprocess.DEVNULL
        )
        assert server.stdout is not None
        os.environ["ATTAR_FAULTS_SITE"] = f"http://127.0.0.1:{server.stdout.readline().decode().strip()}"
        os.environ |= {"no_proxy": "127.0.0.1", "ATTAR_REFERENCES": str(place / "references"), "COLUMNS": "200"}
        try:
            _warm(place)
            yield place
        finally:
            server.kill()
            server.wait()
            server.stdout.close()


def _warm(place: Path) -> None:
    """Run the scenes that train in this process, so that what is loaded late is loaded before the forks."""
    here = Path.cwd()
    kept, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), io.StringIO(), io.StringIO()
    try:
        for name in ("infer", "compare"):
            prepare(SCENES[name], place / "warm" / name)
            with suppress(SystemExit):
                SCENES[name].run()
    finally:
        sys.stdout, sys.stderr = kept
        os.chdir(here)
