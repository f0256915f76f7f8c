"""A search resumes, keeps the full-data trainings, and says what failed."""

from pathlib import Path
from typing import Any

import pytest

import attar
from attar.core.errors import AttarError
from attar.core.files import read_json
from attar.data import Split
from attar.nas import Nas, NasSpec
from attar.nas import run as module
from attar.nas.cell import Job, Work, train_one
from attar.nets.train import Training
from attar.select.budget import SkewWarning
from attar.study.grid import Progress
from tests.known import Stop, images

DATA = images(12)
SPLIT = Split(DATA[:18], DATA[18:27], DATA[27:])


def spec(**changes: Any) -> NasSpec:
    usual = {"methods": (), "per_class": 2, "depths": (1, 2), "widths": (4,), "norms": "none", "full_steps": 6}
    return NasSpec.of({**usual, "training": Training(steps=3), **changes})


def scores(found: Nas) -> list[Any]:
    return [(t.row, t.seed, t.network, t.validation, t.test) for t in found.trials]


def test_every_network_is_trained_on_every_set_and_once_on_the_full_data(tmp_path: Path) -> None:
    found = attar.nas(spec(seeds=(0, 1)), data=SPLIT, folder=tmp_path)
    assert found.searches() == {"uniform": [0, 1], "herding": [0, 1], "early-stopping": [0, 1], "full": [0]}
    assert len(found.trials) == 7 * 4
    for trial in found.trials:
        assert trial.balanced is not None
        assert trial.worst is not None
        assert trial.worst <= trial.balanced
        assert trial.chains == {}
    assert found.majority == float((SPLIT.test.y == SPLIT.train.y.mode().values).double().mean())
    assert Nas.load(tmp_path / "nas.json") == found
    assert (tmp_path / "nas.csv").read_text() == found.csv()
    assert "a search over 4 networks" in attar.report(tmp_path, tmp_path / "p.html").read_text()


def test_a_size_may_be_a_share_and_skewed_classes_are_told(tmp_path: Path) -> None:
    skewed = Split(DATA[[*range(18), 0, 0, 0, 0, 0, 0]], SPLIT.val, SPLIT.test)
    shared = {
        "per_class": 10,
        "fraction": 0.25,
        "baselines": False,
        "methods": "uniform",
        "depths": 1,
        "widths": (2, 4),
    }
    with pytest.warns(SkewWarning):
        found = attar.nas(spec(**shared), data=skewed, folder=tmp_path)
    assert [proxy.size for proxy in found.proxies] == [6]  # a quarter of 24, two of each class


def test_a_killed_search_goes_on_and_another_method_uses_the_same_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, done = attar.nas(spec(), data=SPLIT, folder=tmp_path / "whole"), list[Job]()

    def stops(work: Work, job: Job) -> Any:
        if len(done) == 5:
            raise Stop
        done.append(job)
        return train_one(work, job)

    with monkeypatch.context() as patch:
        patch.setattr(module, "train_one", stops)
        with pytest.raises(Stop):
            attar.nas(spec(), data=SPLIT, folder=tmp_path / "killed")
    seen: list[Progress] = []
    again = attar.nas(spec(), data=SPLIT, folder=tmp_path / "killed", watch=seen.append)
    assert scores(again) == scores(whole)
    assert [part.kept for part in seen if part.stage == "networks"] == [True] * 5 + [False] * 11
    seen.clear()
    grown = attar.nas(
        spec(methods=("k-center",), baselines=False), data=SPLIT, folder=tmp_path / "killed", watch=seen.append
    )
    assert [part.line.split("-0")[0] for part in seen if not part.kept] == ["k-center"] * 5
    assert list(grown.searches()) == ["k-center", "early-stopping", "herding", "uniform", "full"]
    with pytest.raises(AttarError, match="other settings"):
        attar.nas(spec(full_steps=7), data=SPLIT, folder=tmp_path / "killed")


def test_a_damaged_proxy_set_is_kept_aside_and_made_again(tmp_path: Path) -> None:
    whole = attar.nas(spec(), data=SPLIT, folder=tmp_path)
    proxy, trial = tmp_path / "coresets" / "herding-0.safetensors", next((tmp_path / "trials").glob("herding-0*.json"))
    good = proxy.read_bytes()
    proxy.write_bytes(good[:-1])
    trial.unlink()
    with pytest.warns(UserWarning, match=r"kept as herding-0\.safetensors\.unreadable-1, and it is made again"):
        again = attar.nas(spec(), data=SPLIT, folder=tmp_path)
    assert scores(again) == scores(whole)
    assert proxy.read_bytes() == good
    assert proxy.with_name("herding-0.safetensors.unreadable-1").read_bytes() == good[:-1]


def test_early_stopping_is_the_full_data_for_as_many_steps_as_a_proxy_set(tmp_path: Path) -> None:
    short = attar.nas(spec(), data=SPLIT, folder=tmp_path / "a")
    long = attar.nas(spec(training=Training(steps=2), full_steps=3), data=SPLIT, folder=tmp_path / "b")
    assert [t.validation for t in short.of("early-stopping", 0)] == [t.validation for t in long.of("full", 0)]


def test_a_training_that_diverges_is_reported_and_ranks_last(tmp_path: Path) -> None:
    wild = Training(steps=30, lr=1e9, schedule="constant")
    some = spec(methods=("uniform", "early-stopping"), baselines=False, training=wild, full_steps=31)
    found = attar.nas(some, data=SPLIT, folder=tmp_path)
    failed = [trial for trial in found.trials if trial.problem]
    assert failed
    assert all("smaller learning rate" in (trial.problem or "") and trial.test is None for trial in failed)
    assert attar.report(found, tmp_path / "p.html").exists()


def test_batch_norm_and_too_large_proxy_sets_are_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="depend on the rest of the batch"):
        attar.nas(spec(norms=("batch", "none")), data=SPLIT, folder=tmp_path / "n")
    with pytest.raises(AttarError, match="has 6 examples, but 7 per class were asked for"):
        attar.nas(spec(per_class=7), data=SPLIT, folder=tmp_path / "n")
    assert not (tmp_path / "n").exists()


def test_the_jobs_that_are_written_down_have_the_names_of_their_logs(tmp_path: Path) -> None:
    wanted = spec(methods=("dm",), baselines=False, descent={"dm": {"steps": 2}})
    attar.nas(wanted, data=SPLIT, folder=tmp_path)
    assert read_json(tmp_path / "jobs.json") == {path.stem: 2 for path in (tmp_path / "logs").iterdir()} == {"dm-0": 2}


def test_workers_find_the_same(tmp_path: Path) -> None:
    alone = attar.nas(spec(), data=SPLIT, folder=tmp_path / "one")
    together = attar.nas(spec(), data=SPLIT, folder=tmp_path / "two", workers=2)
    assert scores(alone) == scores(together)
