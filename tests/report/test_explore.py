"""`attar.explore`: the page of a folder on the loopback address, and nothing else."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import attar
from attar.core.errors import AttarError
from attar.report import report
from attar.report.explore import Explorer
from tests.known import HANG, images
from tests.report.applications import search
from tests.report.reading import text
from tests.report.running import Folder
from tests.report.studies import study


def get(server: Explorer, path: str = "/", host: str | None = None, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{server.port}")
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def server(folder: Folder) -> Iterator[Explorer]:
    with Explorer(folder.path) as running:
        yield running


def test_a_folder_without_runs_waits_and_then_shows_each_run_that_finished(folder: Folder, server: Explorer) -> None:
    status, page = get(server)
    assert status == 200
    assert "No run has finished yet" in text(page)
    assert "attar compare <toy>" in text(page)
    folder.finish()
    status, page = get(server, host=f"localhost:{server.port}")
    assert status == 200
    assert "score of one run" in text(page)
    for _ in range(3):
        folder.finish()
    assert "mean over two coresets" in text(get(server)[1])
    folder.study.save(folder.path / "study.json")
    assert "attar compare toy --methods" in text(get(server)[1])  # the command that study.json tells


def test_the_page_is_that_of_the_report_and_may_only_listen_to_its_server(folder: Folder, server: Explorer) -> None:
    folder.finish()
    page = get(server)[1]
    assert "connect-src &#39;self&#39;" in page
    assert 'class="live"' in page
    folder.study.save(folder.path / "study.json")
    alone = report(folder.path, folder.path / "page.html").read_text()
    assert "connect-src" not in alone
    assert 'class="live"' not in alone


def test_events_tell_the_state_at_once_and_at_every_change(folder: Folder, server: Explorer) -> None:
    key = folder.finish()
    folder.log('{"step": 12, "loss": 0.5}\n')
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")

    def told() -> dict[str, Any]:
        line = answer.readline().decode()
        assert answer.readline() == b"\n"
        found: dict[str, Any] = json.loads(line.removeprefix("data: "))
        return found

    first = told()
    assert (first["done"], first["total"], first["over"]) == (1, 4, False)
    assert [(one["key"], one["step"], one["loss"]) for one in first["running"]] == [("uniform-2-1", 12, 0.5)]
    assert key == "uniform-2-0"
    while folder.left:
        folder.finish()
    last = told()
    while not last["over"]:
        last = told()
    assert last["done"] == 4
    assert last["version"] != first["version"]
    connection.close()


@pytest.mark.parametrize(
    "path",
    ["/../etc/passwd", "/..%2f..%2fetc/passwd", "/config.json", "/runs/", "/?x", "/events/..", "/index.html"],
)
def test_no_file_is_served_by_its_name(server: Explorer, path: str) -> None:
    status, words = get(server, path)
    assert status == 404
    assert words == f"There is only {server.url}."


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost.evil.example:{port}"])
def test_another_host_is_refused(folder: Folder, server: Explorer, host: str) -> None:
    folder.finish()
    for path in ("/", "/events"):
        status, words = get(server, path, host.format(port=server.port))
        assert status == 403
        assert words == f"Open {server.url} instead."


def test_only_loopback_listens_and_nothing_is_changed(server: Explorer) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    assert server._server.server_address[0] == "127.0.0.1"
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert get(server, method=method)[0] == 501


def test_a_file_a_finished_study_and_an_application_have_their_page_without_events(tmp_path: Path) -> None:
    made = study(tmp_path)
    made.save(tmp_path / "study.json")
    search().save(tmp_path / "nas.json")
    for source, words in (
        (tmp_path / "study.json", "Toy set: 3,000 examples"),
        (tmp_path / "nas.json", "Attar report"),
    ):
        with Explorer(source) as server:
            status, page = get(server)
            assert status == 200
            assert words in text(page)
            assert get(server, "/events")[0] == 404


def test_a_coreset_is_evaluated_before_it_is_shown(tmp_path: Path) -> None:
    data = images(12)
    split = attar.Split(data[:18], data[18:24], data[24:])
    training = attar.Training(steps=2)
    attar.reduce(split, "uniform", per_class=2, network="linear", training=training).save(tmp_path / "c.safetensors")
    told: list[str] = []
    with Explorer(tmp_path / "c.safetensors", data=split, watch=lambda part: told.append(part.line)) as server:
        page = get(server)[1]
    assert len(told) == 4  # random, herding, and the full data with the same training and to convergence
    assert 'class="map-data"' in page
    assert "uniform (random)" in text(page)


def test_what_cannot_be_shown_is_one_sentence(folder: Folder, server: Explorer, tmp_path: Path) -> None:
    (folder.path / "runs").mkdir()
    (folder.path / "runs" / "uniform-2-0.json").write_text("[1]")
    status, words = get(server)
    assert status == 500
    assert "is corrupt or incompatible" in words
    with pytest.raises(AttarError):
        Explorer(tmp_path / "nowhere")
    with pytest.raises(AttarError, match="cannot be used"):
        Explorer(folder.path, port=server.port)
