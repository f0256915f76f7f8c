"""Serve the page of a study on this machine, with the progress of runs that go on."""

from __future__ import annotations

import hashlib
import json
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from attar.continual import Continual
from attar.core.device import device_of
from attar.core.errors import AttarError, instance
from attar.coreset import Coreset
from attar.data import Split
from attar.data.again import load_again
from attar.data.load import Source
from attar.nas import Nas
from attar.report.make import RESULTS, STUDY, at_hand, files_of, opened, text_of, together
from attar.report.page import render, waiting
from attar.study.progress import JOBS, state
from attar.study.results import Study
from attar.study.resume import so_far
from attar.study.runner import Watch, study_coreset

LOOPBACK = "127.0.0.1"
EVERY = 1.0  #: seconds between two looks at the folder
BEAT = 15.0  #: seconds after which an unchanged state is told again, so that a closed page is noticed


def explore(
    source: str | Path,
    *,
    port: int = 0,
    browser: bool = True,
    data: Source | Split | None = None,
    device: str = "cpu",
    watch: Watch | None = None,
) -> None:
    """Serve the page of a study, a coreset or an application until Ctrl-C, for programs on this machine alone.

    The page of a folder that ``attar.compare`` is working on shows how far it is, and offers new results as they come.
    A coreset is evaluated first, as ``attar.report`` does.

    Args:
        source: A folder of ``attar.compare``, finished or not, or of ``attar.continual`` or ``attar.nas``; the JSON
            file of one; or the file of a coreset.
        port: The port on 127.0.0.1; 0 takes a free one.
        browser: Whether to open the page in a browser.
        data: The data that it was made from, for the map; not needed for a known data set that is at hand.
        device: Where a coreset is evaluated: cpu, cuda, mps.
        watch: Called with a ``Progress`` for every finished part of the evaluation of a coreset.
    """
    with Explorer(source, port=port, data=data, device=device, watch=watch) as server:
        if browser:
            webbrowser.open(server.url)
        server.wait()


class Explorer:
    """A server on the loopback address, from its start until the end of the ``with`` block."""

    def __init__(
        self,
        source: str | Path,
        *,
        port: int = 0,
        data: Source | Split | None = None,
        device: str = "cpu",
        watch: Watch | None = None,
    ) -> None:
        self.pages = Pages(Path(instance("source", source, str, Path)), data, device, watch)
        try:
            self._server = ThreadingHTTPServer((LOOPBACK, port), partial(_Answer, self))
        except (OSError, OverflowError) as error:
            raise AttarError(f"Port {port} cannot be used ({error}): choose another, or 0 for any.") from error
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.url = f"http://{LOOPBACK}:{self.port}/"
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def __enter__(self) -> Explorer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait(self) -> None:
        """Serve until Ctrl-C, or another signal that ends the process."""
        with suppress(KeyboardInterrupt):
            while not self.over.wait(3600):
                continue


class Pages:
    """The page of a source; made again where its files have changed."""

    def __init__(self, source: Path, data: Source | Split | None, device: str, watch: Watch | None) -> None:
        self.folder = source if source.is_dir() else source.parent
        self.live = source.is_dir() and (source / "config.json").exists()
        self._lock, self._made = threading.Lock(), ("", "")
        self._data = data
        self._split: Split | None = None
        self._find: Callable[[], Study | Continual | Nas] = partial(_latest if self.live else _result, source)
        found = None if self.live else opened(source)
        if isinstance(found, Coreset):
            split = load_again(found.data.spec, found.recipe.origin, data).to(device_of(device))
            self.folder = files_of(found, source.with_suffix(".html"))
            study = study_coreset(found, split, self.folder, watch=watch)
            self._split, self._find = split, lambda: study

    def version(self) -> str:
        """A hash that changes with the results in the folder."""
        files = [self.folder / name for name in (*RESULTS, JOBS)] + sorted(_runs(self.folder))
        times = [(path.name, path.stat().st_mtime_ns) for path in files if path.exists()]
        return hashlib.blake2b(repr(times).encode(), digest_size=8).hexdigest()

    def html(self) -> str:
        """The page as it is now."""
        with self._lock:
            version = self.version()
            if self._made[0] != version:
                self._made = version, self._html(version)
            return self._made[1]

    def _html(self, version: str) -> str:
        found = self._find()
        with together(found):
            if not isinstance(found, Study):
                return text_of(found)
            if not found.runs:
                return waiting(found, version)
            if self._split is None:
                self._split = at_hand(found, self._data)
            return render(found, self.folder, split=self._split, live=version if self.live else "")


def _runs(folder: Path) -> list[Path]:
    return list((folder / "runs").glob("[!.]*.json"))


def _latest(folder: Path) -> Study:
    """The study that was written last, or that of the runs that finished since."""
    whole, newest = folder / STUDY, max((path.stat().st_mtime_ns for path in _runs(folder)), default=0)
    return Study.load(whole) if whole.exists() and whole.stat().st_mtime_ns >= newest else so_far(folder)


def _result(source: Path) -> Study | Continual | Nas:
    found = opened(source)
    if isinstance(found, Coreset):
        raise AttarError(f"{source} has become a coreset: start again.")
    return found


class _Answer(BaseHTTPRequestHandler):
    """One request; there are two addresses, and no file is served by its name."""

    server_version = "attar"
    sys_version = ""

    def __init__(self, explorer: Explorer, *args: object) -> None:
        self._explorer = explorer
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer with the page or with events."""
        # A name that points here from elsewhere (DNS rebinding) must not make the page readable to its owner.
        if self.headers.get("Host") not in [f"{name}:{self._explorer.port}" for name in (LOOPBACK, "localhost")]:
            return self._text(HTTPStatus.FORBIDDEN, f"Open {self._explorer.url} instead.")
        try:
            if self.path == "/":
                return self._send(HTTPStatus.OK, "text/html", self._explorer.pages.html())
            if self.path == "/events" and self._explorer.pages.live:
                return self._events()
        except AttarError as error:
            return self._text(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        return self._text(HTTPStatus.NOT_FOUND, f"There is only {self._explorer.url}.")

    def log_message(self, *_: object) -> None:
        """Say nothing: requests are of no interest."""

    def _text(self, status: HTTPStatus, words: str) -> None:
        self._send(status, "text/plain", words)

    def _send(self, status: HTTPStatus, kind: str, words: str) -> None:
        body = words.encode()
        self._head(status, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _head(self, status: HTTPStatus, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")

    def _events(self) -> None:
        """Server-sent events: the state of the folder whenever it changes, until the page is closed."""
        self._head(HTTPStatus.OK, "text/event-stream")
        self.end_headers()
        try:
            for told in _told(self._explorer):
                self.wfile.write(f"data: {told}\n\n".encode())
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            return


def _told(explorer: Explorer) -> Iterator[str]:
    """The state as JSON: now, at every change, and from time to time."""
    last, said = "", 0.0
    while True:
        now = state(explorer.pages.folder)
        quiet = round(time.time() - now.changed) if now.changed else None
        about = asdict(now) | {"version": explorer.pages.version(), "over": now.over}
        text = json.dumps(about)
        if text != last or time.monotonic() - said > BEAT:
            last, said = text, time.monotonic()
            yield json.dumps(about | {"quiet": quiet})
        if explorer.over.wait(EVERY):
            return
