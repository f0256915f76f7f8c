"""A writer that is killed leaves the old file, and a temporary that no reader finds and the next writer removes."""

import signal
from pathlib import Path
from subprocess import PIPE

import pytest
import torch

from attar.core.files import atomic, read_json, read_tensors, write_json, write_tensors, write_text
from tests.apart import Process
from tests.known import python

SYNCED = """
import os, signal, sys
from attar.core.files import write_json
real = os.fsync
def fsync(handle):
    real(handle)
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = fsync
write_json(sys.argv[1], ["new"])
"""

# The system ends a process that writes more than it may, here in the middle of what safetensors writes.
HALF = """
import resource, signal, sys, torch
from attar.core.files import write_tensors
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
write_tensors(sys.argv[1], {"x": torch.zeros(10_000)}, {})
"""

WAITING = """
import sys
from attar.core.files import atomic
with atomic(sys.argv[1]) as part:
    part.write_text("slow")
    print(part.parent, flush=True)
    sys.stdin.readline()
"""


def ended(code: str, path: Path) -> int:
    process = python(code, path)
    process.communicate(timeout=600)
    return process.returncode


def waiting(path: Path) -> tuple[Process, Path]:
    """A process that is in the middle of writing ``path``, and its temporary folder."""
    process = python(WAITING, path, stdin=PIPE)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def temporaries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.attar-tmp"))


def test_a_kill_before_the_rename_keeps_the_old_file_and_the_next_write_removes_the_temporary(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_json(path, ["old"])
    assert ended(SYNCED, path) == -signal.SIGKILL
    assert read_json(path) == ["old"]
    assert len(temporaries(tmp_path)) == 1
    assert list(tmp_path.glob("*.json")) == [path]
    write_text(tmp_path / "another.txt", "")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "another.txt", path]


def test_a_kill_in_the_middle_of_tensors_leaves_nothing_that_the_next_write_does_not_remove(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    write_tensors(path, {"x": torch.ones(10)}, {})
    assert ended(HALF, path) == -signal.SIGXFSZ
    (left,) = temporaries(tmp_path)
    assert list(left.iterdir())
    assert list(tmp_path.glob("*.safetensors")) == [path]
    assert torch.equal(read_tensors(path)[0]["x"], torch.ones(10))
    write_tensors(path, {"x": torch.zeros(10)}, {})
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_running_process_writes_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    process, part = waiting(path)
    write_text(path, "quick")
    write_text(path, "quick again")
    assert temporaries(tmp_path) == [part]
    process.communicate("\n", timeout=600)
    assert process.returncode == 0
    assert path.read_text() == "slow"
    assert list(tmp_path.iterdir()) == [path]


def test_what_another_thread_of_this_process_writes_is_never_removed(tmp_path: Path) -> None:
    with atomic(tmp_path / "file.txt") as part:
        part.write_text("outer")
        write_text(tmp_path / "file.txt", "inner")
    assert (tmp_path / "file.txt").read_text() == "outer"


def test_a_temporary_of_another_host_or_of_no_process_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    process, part = waiting(path)
    process.kill()
    process.communicate(timeout=600)
    written, mark = part.name.split(f"{process.pid}-")
    elsewhere = "0" * 8 + mark[8:]
    names = [f"{written}{process.pid}-{elsewhere}", f"{written}x-{mark}", f"{written}{10**12}-{mark}", "a.attar-tmp"]
    for name in names:
        part.with_name(name).mkdir()
    write_text(path, "new")
    assert [left.name for left in temporaries(tmp_path)] == sorted(names)


@pytest.mark.parametrize("name", ["n" * 255, "ä" * 127, "𝒳" * 63])
def test_a_name_as_long_as_the_system_allows_can_be_written(name: str, tmp_path: Path) -> None:
    write_text(tmp_path / name, "new")
    assert list(tmp_path.iterdir()) == [tmp_path / name]
