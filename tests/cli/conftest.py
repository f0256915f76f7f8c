from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from attar import Training, load, reduce
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


@pytest.fixture(scope="session")
def coreset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small coreset of digits."""
    path = tmp_path_factory.mktemp("coreset") / "u.safetensors"
    reduce(load("digits"), "uniform", per_class=2, training=Training(steps=30)).save(path)
    return path
