from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from attar.cli import engine
from attar.cli.console import Shown
from attar.cli.engine import steps_elsewhere
from attar.core.files import write_json, write_text
from attar.engine import Engine
from attar.study.progress import write_jobs
from tests.known import wait_until


def test_the_steps_of_runs_in_other_processes_are_shown_until_they_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "EVERY", 0.01)
    write_jobs(tmp_path, {"dm-1-0": 50, "dc-1-0": 20, "dd-1-0": 9, "uniform-1-0": None})
    file = StringIO()
    with Shown(Console(file=file), every=1000) as shown, steps_elsewhere(shown, tmp_path, Engine(workers=2)):
        write_text(tmp_path / "logs" / "dm-1-0.jsonl", '{"step": 7, "loss": 0.25}\n')
        wait_until(lambda: "dm-1-0: 7 of 50 steps, loss 0.25" in file.getvalue())
        write_text(tmp_path / "logs" / "dm-1-0.jsonl", '{"step": 50, "loss": 0.125}\n')
        wait_until(lambda: [task.completed for task in shown.tasks] == [50])
        write_json(tmp_path / "runs" / "dm-1-0.json", [])
        wait_until(lambda: not shown.tasks)
        assert "dm-1-0: 50 of 50 steps, loss 0.125" in file.getvalue()
        write_text(tmp_path / "logs" / "dc-1-0.jsonl", '{"step": 1, "loss": 2.0}\n')
        wait_until(lambda: shown.tasks)
        write_text(tmp_path / "coresets" / "dc-1-0.safetensors", "")  # in other folders than those of compare
        wait_until(lambda: not shown.tasks)
        write_text(tmp_path / "logs" / "dd-1-0.jsonl", '{"step": 1, "loss": 2.0}\n')
        wait_until(lambda: shown.tasks)
    assert not shown.tasks  # also of a run that did not end
