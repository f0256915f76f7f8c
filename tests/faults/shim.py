"""Counts what a process does to the files below a folder, and fails or ends the process at one of these operations.

What is counted: opening a file for writing, every write that reaches the system, syncing, renaming, making a folder.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from pathlib import Path
from typing import Any, NamedTuple

KILLED = 137  #: exit code of a process that ends itself, as after SIGKILL
HARMS = ("EIO", "ENOSPC", "kill")


class Fault(NamedTuple):
    """What happens at which operation, counted from 1; at 0 nothing does.

    ``EIO`` fails once, ``ENOSPC`` at every write, opening and new folder from then on, as a full disk does, and
    ``kill`` ends the process. A write is done by half before it fails.
    """

    at: int = 0
    harm: str = ""


class Shim:
    """Replaces functions of ``os`` and ``io``; for a process that ends afterwards, as nothing is put back."""

    def __init__(self, folder: Path, fault: Fault = Fault()) -> None:
        self.root, self.fault = os.path.realpath(folder), fault
        self.done: list[str] = []  #: the operations so far

    def install(self) -> None:
        """Begin to count."""
        shim, real = self, {name: getattr(os, name) for name in ("open", "fsync", "replace", "rename", "mkdir")}
        plain = io.open

        class Counted(io.FileIO):
            def write(self, data: Any) -> int:
                size = memoryview(data).nbytes
                shim.step(
                    "write", self.name, lambda: super(Counted, self).write(memoryview(data).cast("B")[: size // 2])
                )
                return super().write(data)

        def opened(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **named: Any) -> Any:
            if not set(mode) & set("wax+") or not shim.mine(file):
                return plain(file, mode, buffering, *rest, **named)
            if not isinstance(file, int):
                shim.step("open", file)
            raw = Counted(file, mode.replace("b", "").replace("t", ""), named.pop("closefd", True))
            if buffering == 0:
                return raw
            buffer = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffer if "b" in mode else io.TextIOWrapper(buffer, *rest, **named)

        def low(path: Any, flags: int, *rest: Any, **named: Any) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and shim.mine(path):
                shim.step("open", path)
            return int(real["open"](path, flags, *rest, **named))

        def step(name: str) -> Any:
            def call(path: Any, *rest: Any, **named: Any) -> Any:
                if shim.mine(path):
                    shim.step(name, path)
                return real[name](path, *rest, **named)

            return call

        builtins.open = io.open = opened  # type: ignore[assignment]
        os.open = low
        for name in ("fsync", "replace", "rename", "mkdir"):
            setattr(os, name, step(name))

    def mine(self, path: Any) -> bool:
        """Whether a path or the number of an open file lies in the folder."""
        found = os.path.realpath(f"/proc/self/fd/{path}" if isinstance(path, int) else os.fsdecode(path))
        return found.startswith(self.root + os.sep)

    def step(self, kind: str, path: Any, half: Any = None) -> None:
        """Count an operation, and fail or end here if it is the one."""
        self.done.append(f"{kind} {Path(str(path)).name}")
        place, (at, harm) = len(self.done), self.fault
        full = harm == "ENOSPC" and place > at > 0 and kind in ("write", "open", "mkdir")
        if place != at and not full:
            return
        if half is not None:
            half()
        if harm == "kill":
            os._exit(KILLED)
        number = errno.EIO if harm == "EIO" else errno.ENOSPC
        raise OSError(number, os.strerror(number), str(path))
