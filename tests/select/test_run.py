from pathlib import Path

import numpy as np
import pytest
import torch

import attar
from attar.core.errors import AttarError
from attar.data import Split
from attar.nets.train import Training
from attar.select import select
from attar.select.kcenter import KCenter
from attar.select.lcmats import LCMatS
from attar.select.sources import from_embeddings
from tests.known import gaussians, generator
from tests.select.seen import cloud

X = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
Y = np.repeat([0, 1, 2], [60, 20, 10])
SHORT = Training(steps=20)


def test_one_call_on_arrays_is_the_method_on_a_view_of_them() -> None:
    expected = KCenter().select(from_embeddings(X), 9, generator())
    assert torch.equal(select(X, "k-center", size=9).indices, expected.indices)
    assert torch.equal(select(X, KCenter(), fraction=0.1).indices, expected.indices)
    assert torch.equal(select(torch.from_numpy(X), "k-center", size=9).indices, expected.indices)
    assert torch.equal(select(from_embeddings(X), "k-center", size=9).indices, expected.indices)


def counts(**how: object) -> list[int]:
    found = select(X, LCMatS(fit=1.0), labels=Y, training=SHORT, **how)  # type: ignore[arg-type]
    return torch.bincount(torch.from_numpy(Y)[found.indices], minlength=3).tolist()


@pytest.mark.filterwarnings("ignore:The scoring network misclassifies")  # labels here are random
@pytest.mark.filterwarnings("ignore:Classes have 10 to 60 examples")
def test_budgets_may_be_shared_among_classes_that_are_not_alike() -> None:
    assert counts(per_class=5) == [5, 5, 5]
    assert counts(size=9, balanced=True) == [3, 3, 3]
    assert counts(fraction=0.1, balanced=False) == [6, 2, 1]
    assert counts(size=40, balanced=True) == [15, 15, 10]
    assert sum(counts(size=7)) == 7


def test_options_parts_and_seeds_reach_the_method() -> None:
    how = {"labels": Y, "size": 8, "training": SHORT}
    near, far = (select(X, "lcmat-s", options={"rho": rho, "fit": 1.0}, **how) for rho in (0, 50))  # type: ignore[arg-type]
    assert not torch.equal(near.indices, far.indices)
    assert len(select(X, "k-center", size=5, part=30).indices) == 5
    seeds = [select(X, "uniform", size=5, seed=seed).indices for seed in (0, 0, 1)]
    assert torch.equal(seeds[0], seeds[1])
    assert not torch.equal(seeds[0], seeds[2])


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"size": 91}, "90 examples, but 91 were asked for"),
        ({"size": 2, "balanced": True}, "cannot be divided among 3 classes"),
        ({"per_class": 11}, "Class '2' has 10 examples, but 11 per class were asked for"),
        ({"per_class": 0}, "per_class must be at least 1"),
        ({"per_class": 2, "size": 3}, "Give the budget as one of"),
        ({}, "Give the budget as one of"),
    ],
)
def test_budgets_that_cannot_be_are_refused(how: dict[str, object], said: str) -> None:
    with pytest.raises(AttarError, match=said):
        counts(**how)


def test_balance_without_labels_is_refused() -> None:
    with pytest.raises(AttarError, match="This needs labels"):
        select(X, "k-center", size=6, balanced=True)
    with pytest.raises(AttarError, match="This needs labels"):
        select(X, "k-center", per_class=1)


def test_a_view_has_its_own_labels() -> None:
    with pytest.raises(AttarError, match="A View has its own labels"):
        select(cloud(), "k-center", size=3, labels=Y)


def test_unknown_methods_and_options_are_named() -> None:
    with pytest.raises(AttarError, match="did you mean 'k-center'"):
        select(X, "k-centre", size=3)
    with pytest.raises(AttarError, match="option of lcmat-s 'roh'"):
        select(X, "lcmat-s", size=3, options={"roh": 1})


def test_a_data_set_is_looked_at_through_a_network_and_a_split_brings_its_validation_set() -> None:
    split = Split(gaussians(8), gaussians(4, seed=1), gaussians(4, seed=2))
    how = {"per_class": 2, "seed": 3, "network": "mlp-d1w5", "training": SHORT}
    for method in ("craig", "gradmatch-val"):
        kept = attar.reduce(split, method, **how)  # type: ignore[arg-type]
        assert kept.indices is not None
        assert torch.equal(select(split, method, **how).indices, kept.indices)  # type: ignore[arg-type]
    assert len(select(split.train, "craig", size=5, training=SHORT).indices) == 5
    with pytest.raises(AttarError, match="needs a validation set"):
        select(split.train, "gradmatch-val", size=5, training=SHORT)


def test_what_does_not_belong_to_the_data_is_refused() -> None:
    with pytest.raises(AttarError, match="A data set has its own labels"):
        select(gaussians(8), "k-center", size=3, labels=Y)
    with pytest.raises(AttarError, match="leave out the network"):
        select(X, "k-center", size=3, network="mlp")
    with pytest.raises(AttarError, match="Pass options to the constructor of the method object"):
        select(X, KCenter(), size=3, options={"rho": 1})


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "safetensors"])
def test_a_selection_is_written_in_four_formats_and_no_other(ending: str, tmp_path: Path) -> None:
    picked = select(X, "k-center", size=4)
    path = tmp_path / f"picks.{ending}"
    picked.save(path, torch.from_numpy(Y), {"method": "k-center"})
    assert path.stat().st_size > 0
    with pytest.raises(AttarError, match=r"use a name that ends in \.csv, \.parquet, \.npz, \.safetensors"):
        picked.save(tmp_path / "picks.json")
