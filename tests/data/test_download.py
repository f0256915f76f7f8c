import hashlib
import io
import re
import socket
import tarfile
import threading
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from attar.core.errors import AttarError
from attar.data import download, verified
from attar.data.download import fetch, provide
from attar.data.load import load
from attar.data.readers import NAMES, SHARED
from attar.data.sources import SOURCES, Remote
from attar.data.verified import RECORD
from tests.data.samples import write_mnist

BODY = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(BODY).hexdigest()


@dataclass
class Site:
    """What the server serves and how it behaves."""

    files: dict[str, bytes] = field(default_factory=lambda: {"/file.bin": BODY})
    ranges: bool = True  # whether it knows Range
    cut: int | None = None  # drop the connection after so many bytes of a body
    length: bool = True  # whether it says Content-Length
    says: str | None = None  # another Content-Length than the true one
    leads: str | None = None  # where it redirects to
    asked: list[str | None] = field(default_factory=list)  # the Range header of every request
    url: str = ""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            served.asked.append(asked)
            body = served.files.get(self.path)
            if served.leads is not None:
                self.send_response(302)
                self.send_header("Location", served.leads)
                return self.end_headers()
            if body is None:
                return self.send_error(404)
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and served.ranges else 0
            if start >= len(body):
                return self.send_error(416)
            self.send_response(206 if asked and served.ranges else 200)
            if asked and served.ranges:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            if served.length:
                self.send_header("Content-Length", served.says or str(len(body) - start))
            self.end_headers()
            self.wfile.write(body[start:] if served.cut is None else body[start : start + served.cut])
            return None

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


def leftovers(folder: Path) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != RECORD)
    return sorted(str(path.relative_to(folder)) for path in files)


# one file


def test_a_fresh_file_arrives_whole_and_progress_counts_to_the_end(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    fetch(f"{site.url}/file.bin", SHA256, tmp_path / "new" / "file.bin", lambda *step: seen.append(step))
    assert (tmp_path / "new" / "file.bin").read_bytes() == BODY
    assert leftovers(tmp_path) == ["new/file.bin"]
    counts = [got for _, got, _ in seen]
    assert counts == sorted(counts)
    assert len(counts) > 1
    assert seen[-1] == ("file.bin", len(BODY), len(BODY))


def test_a_file_without_a_length_arrives_too(site: Site, tmp_path: Path) -> None:
    site.length = False
    seen: list[int | None] = []
    fetch(f"{site.url}/file.bin", SHA256, tmp_path / "file.bin", lambda _, __, total: seen.append(total))
    assert (tmp_path / "file.bin").read_bytes() == BODY
    assert set(seen) == {None}


def test_after_a_cut_connection_the_rest_is_fetched(site: Site, tmp_path: Path) -> None:
    site.cut = 300_000
    with pytest.raises(ConnectionError, match=f"cut after 300000 of {len(BODY)} bytes"):
        fetch(f"{site.url}/file.bin", SHA256, tmp_path / "file.bin")
    assert leftovers(tmp_path) == ["file.bin.part"]
    site.cut = None
    seen: list[int] = []
    fetch(f"{site.url}/file.bin", SHA256, tmp_path / "file.bin", lambda _, got, __: seen.append(got))
    assert (tmp_path / "file.bin").read_bytes() == BODY
    assert site.asked == [None, "bytes=300000-"]
    assert min(seen) > 300_000


def test_a_server_without_ranges_starts_over(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    site.ranges = False
    fetch(f"{site.url}/file.bin", SHA256, tmp_path / "file.bin")
    assert site.asked == ["bytes=1000-"]
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_a_part_longer_than_the_file_is_thrown_away(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"x" * (len(BODY) + 1))
    fetch(f"{site.url}/file.bin", SHA256, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_a_part_that_was_already_whole_is_used(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(BODY)
    fetch(f"{site.url}/file.bin", SHA256, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_a_wrong_checksum_keeps_the_old_file_and_drops_the_new(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(b"old")
    with pytest.raises(AttarError, match="is not the published file"):
        fetch(f"{site.url}/file.bin", "0" * 64, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == b"old"
    assert leftovers(tmp_path) == ["file.bin"]


def test_a_stale_part_fails_the_checksum_once_and_then_the_file_arrives(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    with pytest.raises(AttarError, match="is not the published file"):
        fetch(f"{site.url}/file.bin", SHA256, tmp_path / "file.bin")
    fetch(f"{site.url}/file.bin", SHA256, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_a_file_without_a_sha256_is_fetched_by_https_only(site: Site, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="is not https, and has no SHA-256"):
        fetch(f"{site.url}/file.bin", hashlib.md5(BODY).hexdigest(), tmp_path / "file.bin")
    assert site.asked == []


@pytest.mark.parametrize(("secure", "leads"), [(True, "http://127.0.0.1/file"), (False, "ftp://127.0.0.1/file")])
def test_a_redirect_to_a_worse_place_is_not_followed(secure: bool, leads: str, site: Site, tmp_path: Path) -> None:
    site.leads = leads
    opener = download.build_opener(download._Redirects(secure))
    with pytest.raises(ConnectionError, match=f"it leads to {leads}, which is not https"):
        opener.open(f"{site.url}/file.bin")


@pytest.mark.parametrize("says", ["many", "-5", "1" * 20, "1e3"])
def test_a_length_that_is_none_is_refused(
    says: str, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(site, "mnist", monkeypatch, {"big": BODY})
    site.says = says
    with pytest.raises(AttarError, match=r"Could not download .* \(its Content-Length is '.*put big into"):
        provide("mnist", tmp_path)


@pytest.mark.parametrize("length", [True, False])
def test_more_than_any_known_file_is_not_fetched(
    length: bool, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(site, "mnist", monkeypatch, {"big": BODY})
    monkeypatch.setattr(download, "LARGEST", 600_000)
    site.length = length
    with pytest.raises(AttarError, match="it is larger than 600,000 bytes"):
        provide("mnist", tmp_path)
    assert not (tmp_path / "big.part").stat().st_size


def test_a_link_in_place_of_the_part_is_not_followed(site: Site, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"all that I have")
    (tmp_path / "file.bin.part").symlink_to(precious)
    with pytest.raises(AttarError, match="is a link, which is not followed"):
        fetch(f"{site.url}/file.bin", SHA256, tmp_path / "file.bin")
    assert precious.read_bytes() == b"all that I have"


# known data sets


def serve(site: Site, name: str, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> None:
    """Let the known data set ``name`` be made of ``files``, each fetched on its own."""
    site.files = {f"/{file}": body for file, body in files.items()}
    remotes = [Remote(f"{site.url}/{file}", hashlib.sha256(body).hexdigest(), (file,)) for file, body in files.items()]
    monkeypatch.setitem(SOURCES, name, tuple(remotes))


def mnist_files(folder: Path) -> dict[str, bytes]:
    write_mnist(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_load_fetches_a_known_name_once(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(site, "mnist", monkeypatch, mnist_files(tmp_path / "made"))
    seen: set[str] = set()
    split = load("mnist", root=tmp_path / "root", progress=lambda name, _, __: seen.add(name))
    assert seen == {path.removeprefix("/") for path in site.files}
    assert len(split.test) == 20
    again = load("mnist", root=tmp_path / "root", download=False)
    assert again.train.fingerprint == split.train.fingerprint
    assert len(site.asked) == 4


def test_only_what_is_missing_is_fetched(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(site, "mnist", monkeypatch, mnist_files(tmp_path / "mnist"))
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    load("mnist", root=tmp_path)
    assert len(site.asked) == 1


def test_a_missing_page_says_what_to_put_where(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "svhn", (Remote(f"{site.url}/gone.mat", SHA256, ("gone.mat",)),))
    with pytest.raises(AttarError, match=rf"not download {site.url}/gone\.mat \(HTTP Error 404.*put gone\.mat into"):
        load("svhn", root=tmp_path)


def test_a_cut_connection_says_that_it_goes_on(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(site, "mnist", monkeypatch, {"big": BODY})
    site.cut = 100
    with pytest.raises(AttarError, match=r"cut after 100 of .* try again to resume"):
        provide("mnist", tmp_path)
    assert leftovers(tmp_path) == ["big.part"]


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"sst5"}))
def test_offline_every_known_name_says_what_to_put_where(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"https://127.0.0.1:{closed.getsockname()[1]}"  # bound, but nobody listens
        remotes = [remote._replace(url=f"{address}/{remote.name}") for remote in SOURCES[name]]
        monkeypatch.setitem(SOURCES, name, tuple(remotes))
        with pytest.raises(AttarError, match="Connection refused") as caught:
            load(name, root=tmp_path)
    assert f"into {tmp_path / SHARED.get(name, name)}" in str(caught.value)
    assert remotes[0].files[0] in str(caught.value)


def test_a_server_that_never_answers_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file.bin"
        monkeypatch.setitem(SOURCES, "svhn", (Remote(url, SHA256, ("file.bin",)),))
        with pytest.raises(AttarError, match="timed out"):
            provide("svhn", tmp_path)


@pytest.mark.filterwarnings("ignore:Waiting for")
def test_many_at_once_fetch_a_file_once(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(site, "mnist", monkeypatch, {"big": BODY})
    said: list[object] = []

    def get() -> None:
        try:
            provide("mnist", tmp_path, progress=lambda *step: said.append(step))
        except BaseException as error:
            said.append(error)

    threads = [threading.Thread(target=get) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [part for part in said if isinstance(part, BaseException)] == []
    assert len(site.asked) == 1
    assert leftovers(tmp_path) == ["big"]


def test_a_downloaded_file_that_changes_is_refused_and_an_unchanged_one_is_read_once(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(site, "mnist", monkeypatch, {"big": BODY})
    provide("mnist", tmp_path)
    hashed: list[str] = []
    real = verified.digest_of
    monkeypatch.setattr(verified, "digest_of", lambda file, like: hashed.append(file.name) or real(file, like))
    provide("mnist", tmp_path)
    assert hashed == []
    (tmp_path / "big").touch()  # another time, the same content
    provide("mnist", tmp_path)
    assert len(hashed) == 1
    (tmp_path / "big").write_bytes(BODY[:-1] + b"?")
    for _ in range(2):
        with pytest.raises(AttarError, match="big has changed since it was downloaded: delete it and load again"):
            provide("mnist", tmp_path)
    (tmp_path / "big").unlink()
    provide("mnist", tmp_path)
    assert len(site.asked) == 2


def test_a_file_of_unknown_origin_is_used_with_one_warning(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(site, "mnist", monkeypatch, {"big": BODY})
    (tmp_path / "big").write_bytes(b"mine")
    with pytest.warns(UserWarning, match="big is not the published file"):
        provide("mnist", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        provide("mnist", tmp_path)
    (tmp_path / RECORD).write_text("[1")  # a damaged record is as good as none
    with pytest.warns(UserWarning, match="big is not the published file"):
        provide("mnist", tmp_path)


def test_what_was_unpacked_is_compared_with_what_it_was(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOURCES, "cifar10", packed(site, "box.zip", zipped(CONTENT), ("box/a.bin",)))
    provide("cifar10", tmp_path)
    provide("cifar10", tmp_path)
    (tmp_path / "box" / "a.bin").write_bytes(b"First")
    with pytest.raises(AttarError, match=r"a\.bin has changed since it was downloaded"):
        provide("cifar10", tmp_path)


# archives


def tarball(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
        link = tarfile.TarInfo("box/link.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
    return out.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return out.getvalue()


def packed(site: Site, name: str, body: bytes, wanted: tuple[str, ...]) -> tuple[Remote, ...]:
    site.files = {f"/{name}": body}
    return (Remote(f"{site.url}/{name}", hashlib.sha256(body).hexdigest(), wanted),)


CONTENT = {"box/a.bin": b"first", "box/b.bin": b"second", "../evil.bin": b"out", "/abs.bin": b"out", "box/c.bin": b"no"}


@pytest.mark.parametrize(("name", "make"), [("box.tar.gz", tarball), ("box.zip", zipped)])
def test_an_archive_gives_the_wanted_files_and_nothing_else(
    name: str, make: object, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = make(CONTENT)  # type: ignore[operator]
    monkeypatch.setitem(SOURCES, "cifar10", packed(site, name, body, ("box/a.bin", "box/b.bin")))
    provide("cifar10", tmp_path / "here")
    assert leftovers(tmp_path) == ["here/box/a.bin", "here/box/b.bin"]
    assert (tmp_path / "here" / "box" / "b.bin").read_bytes() == b"second"


def test_an_archive_put_there_by_hand_is_unpacked_offline(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOURCES, "cifar10", packed(site, "box.tar.gz", tarball(CONTENT), ("box/a.bin",)))
    (tmp_path / "box.tar.gz").write_bytes(tarball(CONTENT))
    provide("cifar10", tmp_path, online=False)
    assert leftovers(tmp_path) == ["box/a.bin"]
    assert site.asked == []


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("box.tar.gz", tarball(CONTENT)[:-30], "is not a complete archive"),
        ("box.tar.gz", b"nonsense", "is not a complete archive"),
        ("box.zip", zipped(CONTENT)[:-30], "is not a complete archive"),
        ("box.tar.gz", tarball({}), "holds no box/a.bin"),
        ("box.zip", zipped({}), "holds no box/a.bin"),
        ("box.tar.gz", tarball({"x": b""}), "holds no box/a.bin, box/link.bin"),
    ],
)
def test_a_spoiled_or_foreign_archive_is_refused(
    name: str, body: bytes, words: str, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOURCES, "cifar10", packed(site, name, body, ("box/a.bin", "box/link.bin")))
    (tmp_path / name).write_bytes(body)
    with pytest.raises(AttarError, match=words):
        provide("cifar10", tmp_path, online=False)


def encrypted(files: dict[str, bytes]) -> bytes:
    made = bytearray(zipped(files))
    for place in (match.start() for match in re.finditer(b"PK\x03\x04", made)):
        made[place + 6] |= 1
    for place in (match.start() for match in re.finditer(b"PK\x01\x02", made)):
        made[place + 8] |= 1
    return bytes(made)


def test_an_encrypted_archive_is_refused(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "cifar10", packed(site, "box.zip", encrypted(CONTENT), ("box/a.bin",)))
    with pytest.raises(AttarError, match=r"is not a complete archive .*encrypted"):
        provide("cifar10", tmp_path)


@pytest.mark.parametrize(("name", "make"), [("box.tar.gz", tarball), ("box.zip", zipped)])
def test_what_unpacks_to_more_than_files_may_take_is_not_unpacked(
    name: str, make: object, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = make({"box/a.bin": bytes(10**6)})  # type: ignore[operator]
    monkeypatch.setitem(SOURCES, "cifar10", packed(site, name, body, ("box/a.bin",)))
    monkeypatch.setenv("ATTAR_MAX_BYTES", "500KB")
    with pytest.raises(AttarError, match=r"box/a\.bin in .* needs 1\.0 MB of memory where files may take"):
        provide("cifar10", tmp_path)
    assert not (tmp_path / "box").exists()


# the list


def test_every_known_name_has_a_source_with_a_checksum_for_every_file_that_is_downloaded() -> None:
    assert set(SOURCES) == set(NAMES)
    assert [name for name, remotes in SOURCES.items() if any(remote.digest is None for remote in remotes)] == ["sst5"]
    for remotes in SOURCES.values():
        for remote in remotes:
            assert remote.digest is None or re.fullmatch("[0-9a-f]{32}|[0-9a-f]{64}", remote.digest)
            pinned = len(remote.digest or "") == 64  # a SHA-256, which cannot be forged
            assert remote.url.startswith(("https://", "http://") if pinned else "https://")
            assert remote.files
    different = {remote for remotes in SOURCES.values() for remote in remotes}  # both tasks of TREC have the same files
    sums = [remote.digest for remote in different]
    assert len(sums) == len(set(sums))
