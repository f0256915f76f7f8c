"""What a damaged archive is told from: a disk that does not answer, and too many open files."""

import gzip
import io
import resource
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from attar.core.errors import AttarError
from attar.data.archives import unpack
from attar.data.formats.idx import parse
from attar.data.formats.npz import read_arrays
from attar.data.mapped import open_array
from attar.data.sources import Remote

REMOTE = Remote("https://example.com/box.tar.gz", "0" * 64, ("a.bin",))
BODY = np.random.default_rng(0).bytes(100_000)


@contextmanager
def no_more_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def tarball(packing: Literal["gz", "bz2"] = "gz") -> bytes:
    packed, about = io.BytesIO(), tarfile.TarInfo("a.bin")
    about.size = len(BODY)
    with tarfile.open(fileobj=packed, mode=f"w:{packing}") as tar:
        tar.addfile(about, io.BytesIO(BODY))
    return packed.getvalue()


def test_an_archive_on_a_disk_that_does_not_answer_is_not_called_damaged(tmp_path: Path) -> None:
    archive = tmp_path / "box.tar.gz"
    archive.symlink_to("/proc/self/mem")  # whose first page cannot be read: EIO
    with pytest.raises(
        AttarError, match=r"Could not read .*box\.tar\.gz \(\[Errno 5\].*; the file is unchanged: check"
    ):
        unpack(archive, REMOTE, tmp_path)
    assert archive.is_symlink()


def test_with_too_many_open_files_no_file_is_called_damaged(tmp_path: Path) -> None:
    archive, arrays, array, idx = (tmp_path / name for name in ("box.tar.gz", "a.npz", "a.npy", "a.gz"))
    archive.write_bytes(tarball())
    np.savez(arrays, x=np.zeros(3))
    np.save(array, np.zeros(3))
    idx.write_bytes(gzip.compress(bytes((0, 0, 8, 1, 0, 0, 0, 1, 7))))
    calls = (
        lambda: unpack(archive, REMOTE, tmp_path),
        lambda: read_arrays(arrays),
        lambda: open_array(array),
        lambda: parse(idx, 1),
    )
    for call in calls:
        with no_more_files(), pytest.raises(AttarError, match=r"Could not read .*Too many open files.*is unchanged"):
            call()
        if call is not calls[0]:
            call()
    unpack(archive, REMOTE, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == BODY


def test_damage_within_a_member_is_not_a_failure_to_write(tmp_path: Path) -> None:
    archive, damaged = tmp_path / "box.tar", bytearray(tarball("bz2"))  # whose damage is an OSError
    damaged[len(damaged) // 2] ^= 1
    archive.write_bytes(damaged)
    with pytest.raises(AttarError, match=r"box\.tar is not a complete archive .*: delete it and load again"):
        unpack(archive, REMOTE, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["box.tar"]
