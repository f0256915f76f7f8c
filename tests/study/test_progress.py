from __future__ import annotations

import json
from pathlib import Path

import pytest

import attar
from attar.core.errors import AttarError
from attar.study.progress import Running, state, write_jobs
from tests.known import images


def log(folder: Path, key: str, text: str) -> None:
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / f"{key}.jsonl").write_text(text)


def test_a_folder_tells_what_is_done_and_how_far_the_others_are(tmp_path: Path) -> None:
    write_jobs(tmp_path, {"uniform-1-0": None, "dm-1-0": 60, "dm-1-1": 60, "dm-1-2": 60})
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "uniform-1-0.json").write_text("[]")
    (tmp_path / "runs" / "other-1-0.json").write_text("[]")  # of an earlier call
    log(tmp_path, "uniform-1-0", '{"step": 1, "loss": 1.0}\n')
    log(tmp_path, "dm-1-0", "".join(json.dumps({"step": k, "loss": 1 / k}) + "\n" for k in range(1, 2001)) + '{"ste')
    log(tmp_path, "dm-1-1", '{"step": 1')
    log(tmp_path, "dm-1-2", '{"step": 3, "loss": NaN}\n')
    found = state(tmp_path)
    assert (found.done, found.total, found.over) == (1, 4, False)
    assert found.running == (Running("dm-1-0", 2000, 60, 1 / 2000), Running("dm-1-2", 3, 60, None))  # last whole lines
    assert found.changed > 0


def test_a_folder_of_an_earlier_version_has_finished(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "uniform-1-0.json").write_text("[]")
    assert (state(tmp_path).done, state(tmp_path).total, state(tmp_path).over) == (1, 1, True)
    (tmp_path / "jobs.json").write_text("[1]")
    with pytest.raises(AttarError, match="corrupt"):
        state(tmp_path)


def test_compare_writes_down_what_it_was_asked_for(tmp_path: Path) -> None:
    data = images(12)
    spec = {"methods": ["dm"], "per_class": 1, "seeds": 0, "network": "linear", "draws": 1, "converged": False}
    spec |= {"training": {"steps": 2}, "descent": {"dm": {"steps": 3}}}
    attar.compare(spec, data=attar.Split(data[:18], data[18:24], data[24:]), folder=tmp_path)
    assert json.loads((tmp_path / "jobs.json").read_text()) == {
        "dm-1-0": 3,
        "uniform-1-0": None,
        "herding-1-0": None,
        "full-all-0": None,
    }
    assert state(tmp_path).over
