"""`attar explore` as a process."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.known import HANG
from tests.report.running import Folder


def test_it_prints_its_address_serves_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.finish()
    command = [sys.executable, "-m", "attar.cli", "explore", str(tmp_path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url, _, rest = process.stdout.readline().partition(" ")
        assert rest.strip() == f"shows {tmp_path} until Ctrl-C."
        with urllib.request.urlopen(url, timeout=HANG) as answer:
            assert b"Toy set" in answer.read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_source_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attar.cli", "explore", str(tmp_path / "nowhere"), "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "nowhere" in done.stderr
