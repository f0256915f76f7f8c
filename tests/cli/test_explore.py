"""`attar explore` as a process."""

from __future__ import annotations

import signal
import urllib.request
from pathlib import Path

from tests.cli.conftest import MAIN, Attar
from tests.known import HANG, python
from tests.report.running import Folder


def test_it_prints_its_address_serves_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.finish()
    process = python(MAIN, "explore", tmp_path, "--no-browser")
    url, _, rest = process.stdout.readline().partition(" ")
    assert rest.strip() == f"shows {tmp_path} until Ctrl-C."
    with urllib.request.urlopen(url, timeout=HANG) as answer:
        assert b"Toy set" in answer.read()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=HANG) == ("", "")
    assert process.returncode == 0


def test_a_source_that_is_not_there_is_one_sentence(attar: Attar, tmp_path: Path) -> None:
    done = attar("explore", tmp_path / "nowhere", "--no-browser")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "nowhere" in done.err
