"""A folder is one study: it grows, it says what it holds, and what was changed by hand is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attar.core.errors import AttarError, DamagedFile
from attar.data import Split
from attar.nets.train import Training
from attar.study import Run, Study, StudySpec
from attar.study.grid import Job, Progress
from attar.study.resume import finished, settle
from attar.study.runner import Watch, run_study
from tests.known import gaussians, python

QUICK = Training(steps=5)
DATA = gaussians(16)
SPLIT = Split(DATA[:24], DATA[24:36], DATA[36:])


SPEC = StudySpec(methods=(), per_class=1, network="linear", training=QUICK, draws=1, converged=False)


def study(
    folder: Path,
    methods: list[str],
    seeds: list[int],
    descent: dict[str, dict[str, Any]] | None = None,
    watch: Watch | None = None,
) -> Study:
    spec = replace(SPEC, methods=methods, seeds=seeds, descent=descent or {})
    return run_study(spec, SPLIT, folder, command=f"make {methods} {seeds}", watch=watch)


def cells(runs: list[Run]) -> list[tuple[str, int]]:
    return [(run.method, run.seed) for run in runs]


def test_other_seeds_make_the_study_larger_and_the_same_as_all_at_once(tmp_path: Path) -> None:
    first = study(tmp_path / "grown", [], [2, 3])
    grown = study(tmp_path / "grown", [], [0, 1])
    at_once = study(tmp_path / "once", [], [0, 1, 2, 3])
    assert cells(grown.runs) == cells(at_once.runs)
    assert [run.test for run in grown.runs] == [run.test for run in at_once.runs]
    assert [run for run in grown.runs if run.seed > 1] == first.runs  # they were not run again
    assert Study.load(tmp_path / "grown" / "study.json") == grown
    assert grown.command == "make [] [2, 3] && make [] [0, 1]"


def test_other_methods_join_and_what_was_set_for_each_is_told(tmp_path: Path) -> None:
    descent = {"dm": {"steps": 2}, "dc": {"steps": 1}}
    study(tmp_path, ["dm"], [0], descent={"dm": {"steps": 2}})
    grown = study(tmp_path, ["dc"], [0], descent={"dc": {"steps": 1}})
    assert cells(grown.runs) == [("uniform", 0), ("herding", 0), ("dc", 0), ("dm", 0), ("full", 0)]
    assert grown.config["descent"] == descent


def test_a_call_that_runs_nothing_is_not_among_the_commands(tmp_path: Path) -> None:
    whole = study(tmp_path, [], [0, 1])
    part = study(tmp_path, [], [1])
    assert part == whole


def test_only_the_runs_asked_for_are_watched(tmp_path: Path) -> None:
    seen: list[Progress] = []
    study(tmp_path, [], [0])
    study(tmp_path, [], [1], watch=seen.append)
    assert [part.line.split(":")[0] for part in seen] == ["uniform-1-1", "herding-1-1", "full-all-1"]
    assert [part[:3] for part in seen] == [("runs", done, 3) for done in (1, 2, 3)]
    assert not any(part.kept for part in seen)
    seen.clear()
    study(tmp_path, [], [1], watch=seen.append)
    assert [part.kept for part in seen] == [True] * 3


def test_a_run_under_another_name_and_a_changed_one_are_kept_aside_and_run_again(tmp_path: Path) -> None:
    whole = study(tmp_path, [], [0])
    assert set(finished(tmp_path)) == {"full-all-0", "herding-1-0", "uniform-1-0"}
    runs = tmp_path / "runs"
    (runs / "uniform-1-0.json").write_text((runs / "herding-1-0.json").read_text())
    (runs / "herding-1-0.json").write_text("[{}]")
    with pytest.raises(DamagedFile, match=r"herding-1-0\.json is corrupt or incompatible: move it away"):
        finished(tmp_path)
    with pytest.warns(UserWarning, match="it is run again") as said:
        again = study(tmp_path, [], [0])
    assert [str(one.message).split("runs/")[1].partition(": it is kept as ")[::2] for one in said] == [
        ("herding-1-0.json is corrupt or incompatible", "herding-1-0.json.unreadable-1, and it is run again."),
        (
            "uniform-1-0.json holds another run than its name says",
            "uniform-1-0.json.unreadable-1, and it is run again.",
        ),
    ]
    assert [run.test for run in again.runs] == [run.test for run in whole.runs]
    assert (runs / "herding-1-0.json.unreadable-1").read_text() == "[{}]"


def test_a_run_whose_coreset_is_damaged_or_missing_is_run_again(tmp_path: Path) -> None:
    whole = study(tmp_path, ["dm"], [0, 1], descent={"dm": {"steps": 2}})
    damaged, missing = (tmp_path / "coresets" / f"dm-1-{seed}.safetensors" for seed in (0, 1))
    good = damaged.read_bytes(), missing.read_bytes()
    flipped = bytearray(good[0])
    flipped[-1] ^= 1
    damaged.write_bytes(flipped)
    missing.unlink()
    seen: list[Progress] = []
    with pytest.warns(UserWarning, match=r"kept as dm-1-0\.safetensors\.unreadable-1, and it is made again"):
        again = study(tmp_path, ["dm"], [0, 1], descent={"dm": {"steps": 2}}, watch=seen.append)
    assert [part.line.split(":")[0] for part in seen if not part.kept] == ["dm-1-0", "dm-1-1"]
    assert (damaged.read_bytes(), missing.read_bytes()) == good
    assert damaged.with_name("dm-1-0.safetensors.unreadable-1").read_bytes() == flipped
    assert [run.test for run in again.runs] == [run.test for run in whole.runs]


def test_in_a_folder_of_other_settings_nothing_is_renamed(tmp_path: Path) -> None:
    study(tmp_path, ["dm"], [0], descent={"dm": {"steps": 2}})
    (tmp_path / "runs" / "dm-1-0.json").write_text("{}")  # as one of another version may look
    with pytest.raises(AttarError, match="other settings"):
        study(tmp_path, ["dm"], [0], descent={"dm": {"steps": 3}})
    assert (tmp_path / "runs" / "dm-1-0.json").read_text() == "{}"


def test_a_folder_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    study(tmp_path, [], [0])
    config = json.loads((tmp_path / "config.json").read_text())
    del config["format"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(AttarError, match="earlier version: choose another folder, or remove it"):
        study(tmp_path, [], [0, 1])


def test_what_a_process_left_that_was_killed_after_it_wrote_a_result_is_removed(tmp_path: Path) -> None:
    study(tmp_path, ["dm"], [0], descent={"dm": {"steps": 2}})
    left = tmp_path / "checkpoints" / "dm-1-0.safetensors", tmp_path / "snapshots" / "dm-1-0" / "step1.safetensors"
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    study(tmp_path, ["dm"], [0], descent={"dm": {"steps": 2}})
    assert not any(path.exists() for path in left)


def test_no_folder_holds_nothing(tmp_path: Path) -> None:
    assert finished(tmp_path / "nowhere") == {}
    assert Job("full", None, 3).key == "full-all-3"


# Studies whose process is killed at its first sync, at its second and so on, each begun anew and then carried on once.
KILLED = """
import os, signal, sys, torch
from itertools import count
from pathlib import Path
from tests.study.test_resume import study
torch.set_num_threads(1)
study(Path(sys.argv[1], "undisturbed"), [], [0])
sync = os.fsync
def ended(folder, kill):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    syncs = count(1)
    def fsync(handle):
        sync(handle)
        if next(syncs) == kill:
            os.kill(os.getpid(), signal.SIGKILL)
    os.fsync = fsync
    study(folder, [], [0])
    os._exit(0)
for kill in count(1):
    folder = Path(sys.argv[1], str(kill))
    if ended(folder, kill) == 0:
        break
    left = len(list(folder.rglob("*.attar-tmp")))
    print(left, ended(folder, 0), flush=True)
"""


def test_a_study_killed_at_any_write_goes_on_to_the_same_numbers_and_leaves_no_temporary(tmp_path: Path) -> None:
    out, err = python(KILLED, tmp_path).communicate(timeout=300)
    left, codes = zip(*(map(int, line.split()) for line in out.splitlines()), strict=True)
    assert len(codes) >= 2 * 7, err  # seven files, and the folder of each
    assert set(codes) == {0}, err
    assert sum(left) >= 7  # before each of them was renamed
    undisturbed = tmp_path / "undisturbed"
    names = sorted(path.relative_to(undisturbed) for path in undisturbed.rglob("*"))
    scores = [run.test for run in Study.load(undisturbed / "study.json").runs]
    for folder in tmp_path.iterdir():
        assert [run.test for run in Study.load(folder / "study.json").runs] == scores
        assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == names


def test_half_a_result_that_an_earlier_version_left_under_a_hidden_name_is_no_result(tmp_path: Path) -> None:
    whole = study(tmp_path, [], [0])
    (tmp_path / "runs" / ".uniform-1-0.json.k3_x0a1b.json").write_text('[{"method": "uni')
    assert study(tmp_path, [], [0]) == whole
    with pytest.raises(ValueError, match="does not start with a dot"):
        replace(SPEC, methods=[".dm"], variants={".dm": "dm"})


def test_settings_that_cannot_be_read_now_are_kept(tmp_path: Path) -> None:
    study(tmp_path, [], [0])
    path = tmp_path / "config.json"
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to("/not/mounted")
    with pytest.raises(AttarError, match=r"Could not read .*config\.json"):
        study(tmp_path, [], [0])
    assert path.is_symlink()


@pytest.mark.parametrize(
    "change",
    [{"methods": 3}, {"methods": [1]}, {"methods": {"dm": 3}}, {"commands": 3}, {"commands": [3]}, {"shared": 3}],
)
def test_damaged_settings_are_one_sentence(change: dict[str, object], tmp_path: Path) -> None:
    settle(tmp_path, {"a": 1}, {"uniform": {}}, "attar compare")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DamagedFile, match=r"config\.json is damaged .*restore it, or choose another folder"):
        settle(tmp_path, {"a": 1}, {"uniform": {}}, None)
