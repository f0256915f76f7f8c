import errno
import fcntl
import os
import platform
import threading
from pathlib import Path
from subprocess import PIPE

import pytest

from attar.core import lock
from attar.core.errors import AttarError
from attar.core.lock import claimed, in_turn, owned
from tests.known import HANG, python

HOLD = """
import sys
from attar.core.lock import claimed
with claimed(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_file_that_another_process_writes_is_refused_until_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "new" / "coreset.safetensors"
    other = python(HOLD, path, stdin=PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    who = f"process {other.pid} on {platform.node()}"
    with pytest.raises(AttarError, match=f"{path} is in use by {who}: wait until that has ended"), claimed(path):
        pass
    other.kill()
    other.communicate(timeout=HANG)
    assert list(path.parent.iterdir())  # the killed process left its lock file, which holds nobody up
    with claimed(path):
        pass
    assert not list(path.parent.iterdir())


def test_other_files_and_folders_are_not_affected(tmp_path: Path) -> None:
    with claimed(tmp_path / "a"), claimed(tmp_path / "b"), owned(tmp_path), owned(tmp_path / "c"):
        pass
    with pytest.raises(AttarError, match="in use"), owned(tmp_path), owned(tmp_path):
        pass


@pytest.mark.filterwarnings("ignore:Waiting for")
def test_many_take_turns_and_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "POLL", 1e-4)
    count = tmp_path / "count"
    count.write_text("0")

    def add() -> None:
        for _ in range(25):
            with in_turn(count):
                count.write_text(str(int(count.read_text()) + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count.read_text() == "100"
    assert list(tmp_path.iterdir()) == [count]


def test_who_waits_is_told_for_whom_and_may_look_on(tmp_path: Path) -> None:
    inner, looks = owned(tmp_path), []
    inner.__enter__()

    def look() -> None:
        looks.append(1)
        if len(looks) == 2:
            inner.__exit__(None, None, None)

    with pytest.warns(UserWarning, match=f"Waiting for process {os.getpid()} on"), in_turn(tmp_path, look):
        assert len(looks) == 2


def test_a_file_system_without_locks_is_said_aloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", missing)
    with pytest.warns(UserWarning, match="has no locks: make sure that one process"), claimed(tmp_path / "a"):
        pass


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("all that I have")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / lock.SUFFIX).symlink_to(precious)
    with pytest.raises(AttarError, match="Could not write"), owned(tmp_path / "folder"):
        pass
    assert precious.read_text() == "all that I have"


def test_what_cannot_be_a_file_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, says in (
        (tmp_path, "is a folder: give the name of a file"),
        (Path("/dev/null"), "is a device, not a file"),
        (tmp_path / "file" / "below", "Could not write"),
        (tmp_path / ("long" * 100), "Could not write"),
    ):
        with pytest.raises(AttarError, match=says), claimed(path):
            pass
    with pytest.raises(AttarError, match="is a file: give the name of a folder"), owned(tmp_path / "file"):
        pass


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "free space on that disk"), (errno.EDQUOT, "your share"), (errno.EROFS, "can only be read")],
)
def test_a_place_where_nothing_can_be_written_is_found_before_the_work(
    number: int, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "old").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AttarError, match=f"{remedy}.*; what is there is unchanged"), claimed(tmp_path / "old"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "old"
