"""Download the files of known data sets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from io import BufferedRandom
from pathlib import Path
from typing import IO
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from attar.core import budget
from attar.core.errors import AttarError
from attar.core.lock import in_turn
from attar.core.temporary import sweep
from attar.data.archives import unpack
from attar.data.formats.find import find
from attar.data.sources import SOURCES, Remote
from attar.data.verified import digest_of, verify

Progress = Callable[[str, int, int | None], None]  #: file name, bytes so far, bytes in all if known

TIMEOUT = 30.0  #: seconds without an answer
CHUNK = 1 << 18
LARGEST = 10**9  #: bytes; the largest known file has 0.56 GB


def provide(name: str, folder: Path, *, online: bool = True, progress: Progress | None = None) -> None:
    """Make sure that every file of a known data set is in ``folder``: unpack or download what is missing.

    What is there is compared with the published sums (``data/verified.py``). If another process is downloading the
    same file, it is waited for.
    """
    for remote in SOURCES[name]:
        for place in {folder, *((folder / file).parent for file in remote.files)}:
            sweep(place)  # where nothing is missing, no write does it
        if _stands_in(folder, remote.instead):
            continue
        if not _present(folder, remote):
            _obtain(name, remote, folder, online, progress)
        known = {file: remote.digest if remote.single else None for file in remote.files if (folder / file).is_file()}
        if remote.digest is not None:
            verify(folder, known)


def _obtain(name: str, remote: Remote, folder: Path, online: bool, progress: Progress | None) -> None:
    """Download or unpack a file."""
    if remote.digest is None:
        raise AttarError(f"{name} is not on disk: {_remedy(remote, folder)}; they are at {remote.url}.")
    target = folder / remote.name
    if not target.is_file() and not online:
        raise AttarError(f"{name} is not on disk: {_remedy(remote, folder)}, or load it with download=True.")

    def look() -> None:
        part = _part(target)
        if progress is not None and part.is_file():
            progress(remote.name, part.stat().st_size, None)

    with in_turn(target, look):
        if _present(folder, remote):  # another process was faster
            return
        if not target.is_file():
            try:
                fetch(remote.url, remote.digest, target, progress)
            except (OSError, HTTPException) as error:
                raise AttarError(
                    f"Could not download {remote.url} ({error}): try again to resume, or {_remedy(remote, folder)}."
                ) from error
        if not remote.single:
            verify(folder, {remote.name: remote.digest})
            unpack(target, remote, folder)


def _present(folder: Path, remote: Remote) -> bool:
    return all(find(folder, file) for file in remote.files)


def _stands_in(folder: Path, instead: str) -> bool:
    return bool(instead) and any((folder / name).exists() for name in (instead, Path(instead).name))


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def fetch(url: str, digest: str, path: Path, progress: Progress | None = None) -> None:
    """Download to ``path.part``, resuming an earlier attempt; check the digest, then rename to ``path``.

    Args:
        url: What to download: by https, on the whole way, if the digest is an MD5, which can be forged.
        digest: The published MD5 or SHA-256.
        path: Where to.
        progress: Called with every piece.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _part(path)
    if part.is_symlink():
        raise AttarError(f"{part} is a link, which is not followed: remove it and try again.")
    secure = len(digest) < 64
    with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "rb+") as file:
        try:
            _receive(url, file, path.name, secure, progress)
        except HTTPError as error:
            if error.code != 416:
                raise
            file.truncate(0)  # longer than the file: left by another version
            _receive(url, file, path.name, secure, progress)
        file.seek(0)
        if digest_of(file, digest) != digest:
            part.unlink()
            raise AttarError(
                f"{url} is not the published file (its digest is not {digest}): download it again or from another "
                "source."
            )
        os.fsync(file.fileno())
    part.replace(path)


def _receive(url: str, file: BufferedRandom, name: str, secure: bool, progress: Progress | None) -> None:
    start = file.seek(0, os.SEEK_END)
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    if secure and not url.startswith("https://"):
        raise AttarError(f"{url} is not https, and has no SHA-256 to tell a forged file: download it yourself.")
    with build_opener(_Redirects(secure)).open(request, timeout=TIMEOUT) as answer:
        resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        got = start if resumed else 0
        file.truncate(got)
        file.seek(got)
        total = _total(got, answer.headers.get("Content-Length"))
        while piece := answer.read(CHUNK):
            got += len(piece)
            if got > LARGEST:
                file.truncate(0)
            _require_modest(got)
            file.write(piece)
            if progress is not None:
                progress(name, got, total)
    file.flush()
    if total is not None and got < total:
        raise ConnectionError(f"the connection was cut after {got} of {total} bytes")


class _Redirects(HTTPRedirectHandler):
    """Follows redirects, but from https only to https."""

    def __init__(self, secure: bool) -> None:
        self.secure = secure

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The next request."""
        if not newurl.startswith("https://" if self.secure else ("https://", "http://")):
            raise ConnectionError(f"it leads to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _total(got: int, length: str | None) -> int | None:
    if length is None:
        return None
    if not re.fullmatch("[0-9]{1,15}", length):
        raise ConnectionError(f"its Content-Length is {length[:50]!r}")
    _require_modest(got + int(length))
    return got + int(length)


def _require_modest(size: int) -> None:
    if size > LARGEST:
        raise ConnectionError(f"it is larger than {budget.shown(LARGEST)}, which no known file is")


def _remedy(remote: Remote, folder: Path) -> str:
    packed = "" if remote.single or remote.digest is None else f"{remote.name} or "
    return f"put {packed}{', '.join(remote.files)} into {folder}"
