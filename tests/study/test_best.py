"""What the test set chooses in some public code is really the best of what was tried, and says so."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import attar
from attar.assess.score import evaluate
from attar.core import streams
from attar.coreset import Coreset
from attar.data import Split
from attar.infer import Draws
from attar.nets import network
from attar.nets.train import Trainer, Training
from attar.reduce import reduce
from attar.study import best, cell, compare
from attar.study import protocol as protocols
from attar.study.grid import Job
from tests.known import Stop


@pytest.fixture(scope="module")
def split() -> Split:
    """Digits, of which no few examples are enough for all."""
    whole = attar.load("digits")
    return Split(whole.train[:300], whole.val[:50], whole.test[:100])


def test_the_best_epoch_has_the_highest_test_accuracy_of_all_epochs(split: Split) -> None:
    data, net = split.train[:20], network("linear", split.spec)
    training = Training(steps=8, batch=10, lr=2.0, schedule="constant")  # an epoch is two steps
    found = best.best_epoch(data, net, training, 1, 2, split.test)
    gen = streams.evaluation(2)
    trainer, after = Trainer(net, data, training, net.init(gen)[None]), []
    for number in range(1, 9):
        trainer.step(gen)
        if number % 2 == 0:
            after.append(evaluate(Draws(net, trainer.theta, data.spec), split.test).accuracy)
    assert evaluate(found, split.test).accuracy == max(after)
    assert max(after) > after[-1]
    assert found.notes["label"] == "best of 4 epochs by test accuracy, as published"


def test_a_snapshot_is_the_coreset_of_a_shorter_run(split: Split, tmp_path: Path) -> None:
    how: dict[str, Any] = {"per_class": 1, "network": "linear", "seed": 3, "options": {"strategy": "none", "batch": 4}}
    recipe = reduce(split, "dm", **how, descent={"steps": 1}).recipe
    watch = partial(best.snapshots, recipe=recipe, folder=tmp_path, every=2)
    last = reduce(split, "dm", **how, descent={"steps": 5}, observers=[watch])
    found = dict(best.tried(tmp_path, torch.device("cpu")))
    assert list(found) == ["step2", "step4"]
    for number in (2, 4):
        short = reduce(split, "dm", **how, descent={"steps": number})
        assert torch.equal(found[f"step{number}"].data.x, short.data.x)
        assert found[f"step{number}"].recipe.descent["steps"] == number
    assert not torch.equal(found["step4"].data.x, last.data.x)


def test_the_best_coreset_of_a_run_is_kept_with_its_scores(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the scores of every coreset, which are found again from the files of a second study."""
    rule = replace(protocols.RULES["dm"], best="coreset")
    monkeypatch.setattr(protocols, "RULES", {"dm": rule})
    monkeypatch.setattr(cell, "snapshots", partial(best.snapshots, every=1))
    seen: list[float] = []
    kept = best.the_best

    def watched(candidates: Any) -> Any:
        seen.extend(sum(run.test.accuracy for run in runs) / len(runs) for runs in candidates)
        return kept(candidates)

    monkeypatch.setattr(cell, "the_best", watched)
    values = {"protocol": "published", "baselines": False, "seeds": 0, "per_class": 1, "methods": ["dm"]}
    values |= {
        "network": "linear",
        "training": {"steps": 3},
        "evaluations": 2,
        "descent": {"dm": {"steps": 4, "lr": 50}},
    }
    study = compare(values, data=split, folder=tmp_path)
    assert len(seen) == 4
    assert max(seen) > min(seen)
    assert sum(run.test.accuracy for run in study.runs) / 2 == pytest.approx(max(seen))
    first = seen.index(max(seen)) + 1
    name = "coresets/dm-1-0.safetensors" if first == 4 else f"coresets/dm-1-0-step{first}.safetensors"
    assert {run.coreset for run in study.runs} == {name}
    assert Coreset.load(tmp_path / name).recipe.descent["steps"] == first
    assert all(str(run.notes["label"]).startswith("best of 4 coresets by test accuracy") for run in study.runs)
    assert not (tmp_path / "snapshots" / Job("dm", 1, 0).key).exists()


def test_a_damaged_snapshot_of_an_unfinished_run_is_kept_aside_and_the_run_starts_anew(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocols, "RULES", {"dm": replace(protocols.RULES["dm"], best="coreset")})
    monkeypatch.setattr(cell, "snapshots", partial(best.snapshots, every=1))
    values = {"protocol": "published", "baselines": False, "seeds": 0, "per_class": 1, "methods": ["dm"]}
    values |= {"network": "linear", "training": {"steps": 3}, "evaluations": 1, "descent": {"dm": {"steps": 3}}}
    whole = compare(values, data=split, folder=tmp_path / "whole")

    def stops(candidates: Any) -> Any:
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(cell, "the_best", stops)
        with pytest.raises(Stop):
            compare(values, data=split, folder=tmp_path / "killed")
    (damaged, *_) = best.saved(tmp_path / "killed" / "snapshots" / "dm-1-0")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="made again|starts anew") as said:
        again = compare(values, data=split, folder=tmp_path / "killed")
    assert len(said) == 2
    assert [run.test for run in again.runs] == [run.test for run in whole.runs]
    assert [run.coreset for run in again.runs] == [run.coreset for run in whole.runs]
    assert (tmp_path / "killed" / "checkpoints" / "dm-1-0.safetensors.unreadable-1").exists()


def test_of_equals_the_first_is_the_best(split: Split, tmp_path: Path) -> None:
    values = {"baselines": False, "seeds": [0, 1], "per_class": 1, "methods": ["uniform"], "network": "linear"}
    (one, two) = compare({**values, "training": {"steps": 1}, "draws": 1}, data=split, folder=tmp_path).runs
    equal = replace(two, test=one.test)
    assert best.the_best([[one], [equal]])[0].seed == 0
    assert best.the_best([[one]])[0].notes["label"] == "best of 1 coresets by test accuracy, as published"
