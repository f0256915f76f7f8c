from collections.abc import Callable
from typing import NamedTuple

import pytest

from attar.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Attar = Callable[..., Outcome]


@pytest.fixture
def attar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Attar:
    """Run a command line in this process."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: object) -> Outcome:
        argv = [str(word) for word in words]
        monkeypatch.setattr("sys.argv", ["attar", *argv])
        with pytest.raises(SystemExit) as stop:
            main(argv)
        captured = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    return call
