from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import attar
from attar import Data, Training
from attar.condense.dm import DM
from attar.condense.driver import Step
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.data import Split
from tests.known import Stop, gaussians, stop_at

DATA = gaussians(8)
SHORT = Training(steps=5)
DM_SHORT: dict[str, Any] = {
    "per_class": 1,
    "network": "mlp-d1w4",
    "options": {"batch": 4, "strategy": "none"},
    "descent": {"steps": 4},
}


def test_a_method_by_name_and_by_object_give_the_same_bits() -> None:
    named = attar.reduce(DATA, "dm", **DM_SHORT)
    own = attar.reduce(DATA, DM(batch=4, strategy="none"), **{**DM_SHORT, "options": None})
    assert torch.equal(named.data.x, own.data.x)
    assert named.recipe.options == own.recipe.options


def test_a_network_of_one_s_own_is_looked_through() -> None:
    coreset = attar.reduce(DATA, "dm", **{**DM_SHORT, "network": lambda: nn.Sequential(nn.Linear(6, 3))})
    assert coreset.recipe.network == "custom:Sequential"


def test_only_the_training_part_of_a_split_is_used() -> None:
    train, poison = gaussians(8), gaussians(4, seed=9).map(lambda x: x + torch.nan)
    split = Split(train, poison, poison)
    assert torch.equal(attar.reduce(split, "dm", **DM_SHORT).data.x, attar.reduce(train, "dm", **DM_SHORT).data.x)
    assert attar.reduce(split, "uniform", per_class=1).recipe.fingerprint == train.fingerprint


def test_scoring_networks_are_trained_as_the_coreset_s_users_train() -> None:
    short, long = (
        attar.reduce(DATA, "herding", per_class=4, network="mlp-d1w4", training=training).indices
        for training in (SHORT, replace(SHORT, steps=60, lr=0.5))
    )
    assert short is not None
    assert long is not None
    assert not torch.equal(short, long)


def test_saving_must_happen_now_and_then(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="every must be at least 1 step, got 0"):
        attar.reduce(DATA, "dm", **DM_SHORT, checkpoint=tmp_path / "state", every=0)


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    first = attar.reduce(DATA, "dm", **DM_SHORT, checkpoint=tmp_path / "state")
    again = attar.reduce(DATA, "dm", **DM_SHORT, checkpoint=tmp_path / "state", observers=[partial(stop_at, 1)])
    assert torch.equal(first.data.x, again.data.x)


def test_a_checkpoint_that_cannot_be_read_now_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.symlink_to("/not/mounted")
    with pytest.raises(AttarError, match=r"Could not read .*state"):
        attar.reduce(DATA, "dm", **DM_SHORT, checkpoint=path)
    assert path.is_symlink()


def test_a_damaged_checkpoint_is_kept_aside_and_the_run_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with pytest.raises(Stop):
        attar.reduce(DATA, "dm", **DM_SHORT, checkpoint=path, every=1, observers=[partial(stop_at, 3)])
    damaged = path.read_bytes()[:-1]
    path.write_bytes(damaged)
    with pytest.warns(UserWarning, match=r"it is kept as state\.unreadable-1, and the run starts anew"):
        again = attar.reduce(DATA, "dm", **DM_SHORT, checkpoint=path)
    assert torch.equal(again.data.x, attar.reduce(DATA, "dm", **DM_SHORT).data.x)
    assert (tmp_path / "state.unreadable-1").read_bytes() == damaged


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"per_class": 2},
        {"network": "mlp-d1w5"},
        {"options": {"batch": 5, "strategy": "none"}},
        {"descent": {"steps": 5}},
        {"data": gaussians(8, seed=1)},
        {"data": Data(DATA.x, DATA.y.flip(0), spec=DATA.spec)},
    ],
)
def test_a_checkpoint_is_resumed_only_by_the_same_recipe(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "state"
    with pytest.raises(Stop):
        attar.reduce(DATA, "dm", **DM_SHORT, checkpoint=path, every=1, observers=[partial(stop_at, 3)])
    with pytest.raises(AttarError, match="is a checkpoint of another recipe"):
        attar.reduce(**{"data": DATA, "method": "dm", **DM_SHORT, **change}, checkpoint=path)


def test_the_cost_of_a_resumed_run_counts_what_was_spent_before(tmp_path: Path) -> None:
    def dear(steps: Iterable[Step]) -> Iterator[Step]:
        for step in steps:
            step.run.cost += Cost(1000, 500)
            yield step

    path = tmp_path / "state"
    with pytest.raises(Stop):
        attar.reduce(DATA, "dm", **DM_SHORT, checkpoint=path, every=1, observers=[dear, partial(stop_at, 3)])
    resumed = attar.reduce(DATA, "dm", **DM_SHORT, checkpoint=path).recipe.cost
    assert resumed.wall > 2000  # the third step was not saved
    assert resumed.cpu >= 1000


def test_a_coreset_remembers_how_its_data_was_loaded(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b,kind\n" + "".join(f"{k % 5},{k % 7},{'xy'[k % 2]}\n" for k in range(60)))
    split = attar.load(table, target="kind", val=0.2, scaling="none")
    attar.reduce(split.to("cpu"), "uniform", per_class=1).save(tmp_path / "c.safetensors")
    origin = attar.Coreset.load(tmp_path / "c.safetensors").recipe.origin
    assert origin == split.origin
    assert origin is not None
    assert (origin.source, origin.target, origin.val) == (str(table.resolve()), "kind", 0.2)
    assert attar.reduce(split.train, "uniform", per_class=1).recipe.origin is None


def test_a_run_goes_on_after_its_data_was_moved(tmp_path: Path) -> None:
    table, state = tmp_path / "a.csv", tmp_path / "state.safetensors"
    table.write_text("a,b,label\n" + "".join(f"{k % 5},{k % 7},{'xy'[k % 2]}\n" for k in range(60)))
    with pytest.raises(Stop):
        attar.reduce(attar.load(table), "dm", **DM_SHORT, checkpoint=state, every=1, observers=[partial(stop_at, 3)])
    (tmp_path / "elsewhere").mkdir()
    moved = attar.load(table.rename(tmp_path / "elsewhere" / "a.csv"))
    with pytest.raises(Stop):  # it begins at step 3: another run would be refused, a new one begin at step 1
        attar.reduce(moved, "dm", **DM_SHORT, checkpoint=state, observers=[partial(stop_at, 3)])
    whole = attar.reduce(moved, "dm", **DM_SHORT)
    assert torch.equal(attar.reduce(moved, "dm", **DM_SHORT, checkpoint=state).data.x, whole.data.x)
