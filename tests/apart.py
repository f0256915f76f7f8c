"""Processes that start at once: each is a fork of one that has imported the library and done nothing else."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Thread
from typing import IO, NoReturn

PIPE = subprocess.PIPE
ROOT = Path(__file__).parents[1]
#: Imported at the first use, and so by every process anew: by optimisers, for two seconds, and by tables.
LATER = ("torch._dynamo", "pyarrow.parquet", "pyarrow.compute")


def environment() -> dict[str, str]:
    """Of processes that tests start: one thread, and the repository on the path."""
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}


class Process:
    """Code in a process of its own, with what tests need of ``subprocess.Popen``."""

    stdin: IO[str] | None = None

    def __init__(self, code: str, arguments: list[str], stdin: int | None = None, terminal: int | None = None) -> None:
        """With a terminal, all three streams are that."""
        if terminal is None:
            taken = self._open(stdin)
            (out, printed), (err, said) = os.pipe(), os.pipe()
            self.stdout, self.stderr = os.fdopen(out), os.fdopen(err)
        else:
            taken, printed, said = (os.dup(terminal) for _ in range(3))
        self._news, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps([code, arguments, environment()])
        fds = [taken, printed, said, theirs.detach()]
        socket.send_fds(_server(), [request.encode()], fds)
        for fd in fds:
            os.close(fd)
        self.pid = int(self._news.recv(64))
        self.returncode: int | None = None

    def _open(self, stdin: int | None) -> int:
        """What the process reads."""
        if stdin == PIPE:
            theirs, ours = os.pipe()
            self.stdin = os.fdopen(ours, "w")
            return theirs
        return os.dup(0) if stdin is None else os.open(os.devnull, os.O_RDONLY)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._news.settimeout(timeout)
            self.returncode = int(self._news.recv(64))
            self._news.close()
        return self.returncode

    def poll(self) -> int | None:
        try:
            return self.wait(timeout=0)
        except BlockingIOError:
            return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, text: str = "", timeout: float | None = None) -> tuple[str, str]:
        """What it writes from now on, when it has read this and ended."""
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(text)
        found = dict[IO[str], str]()
        readers = [Thread(target=_read, args=(file, found), daemon=True) for file in (self.stdout, self.stderr)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(timeout)
            assert not reader.is_alive(), "waited in vain"
        self.wait(timeout)
        return found[self.stdout], found[self.stderr]


def _read(file: IO[str], found: dict[IO[str], str]) -> None:
    with file:
        found[file] = file.read()


@cache
def _server() -> socket.socket:
    """The connection to the process that is forked, which is started at the first use."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-c", f"from tests.apart import serve; exec(serve({theirs.fileno()}))"]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment())
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def serve(number: int) -> str:
    """Fork for every request on this socket; returns the code to run in a fork, or nothing after the last request."""
    import attar

    attar.methods()  # imports all
    for name in LATER:
        with contextlib.suppress(ImportError):  # of an extra
            importlib.import_module(name)
    server = socket.socket(fileno=number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever watches a fork ends alone
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    while True:
        request, fds, _, _ = socket.recv_fds(server, 1 << 18, 4)
        if not request:
            return ""
        if not os.fork():
            break
        for fd in fds:
            os.close(fd)
    server.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if child := os.fork():
        _watch(child, fds)
    return _prepare(*json.loads(request), fds)


def _watch(child: int, fds: list[int]) -> NoReturn:
    """Say the number of a process, and how it ended."""
    with socket.socket(fileno=fds.pop()) as news:
        for fd in fds:  # only the child holds its pipes
            os.close(fd)
        news.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        news.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _prepare(code: str, arguments: list[str], environment: dict[str, str], fds: list[int]) -> str:
    """Make this process one that was started with these arguments, environment and streams."""
    for at, fd in enumerate(fds[:3]):
        os.dup2(fd, at)
    for fd in fds:
        os.close(fd)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[1:] = arguments
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    return code
