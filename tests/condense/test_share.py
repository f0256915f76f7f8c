"""Several processes that compute one run together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import attar
from attar.condense.driver import Step
from attar.core.errors import AttarError
from attar.engine.share import Share, together
from attar.experts import Schedule

DIGITS = attar.load("digits").train[:400]
NETWORK = "convnet-d1w8"
RUNS: dict[str, dict[str, Any]] = {
    "dm": {"batch": 16},
    "dc": {"batch": 16, "matches": 3, "net_steps": 4},
    "cafe": {"batch": 16, "net_steps": 4, "query": 4},
    "lcmat-c": {"batch": 16, "matches": 3, "net_steps": 2},
    "kip": {"batch": 64},
    "vbpc": {"batch": 64, "pool": 2, "net_steps": 10, "flips": True},
    "frepo": {"batch": 64, "pool": 2, "net_steps": 10},
}


def reduced(method: str, options: dict[str, Any], processes: int = 1, steps: int = 50, **more: Any) -> attar.Coreset:
    descent = {"steps": steps, "lr": 0.1}  # rates of narrow networks are high, and grow errors of rounding
    return attar.reduce(
        DIGITS, method, per_class=2, network=NETWORK, options=options, descent=descent, processes=processes, **more
    )


@pytest.mark.parametrize("method", RUNS)
def test_two_processes_give_the_same_examples_as_one(method: str) -> None:
    one, two = (reduced(method, RUNS[method], processes) for processes in (1, 2))
    start = reduced(method, RUNS[method], steps=1)
    assert not torch.allclose(one.data.x, start.data.x, atol=1e-3)
    assert torch.allclose(one.data.x, two.data.x, rtol=0, atol=1e-5)
    assert torch.allclose(one.data.y.double(), two.data.y.double(), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("method", "options"), [("bpc-cd", {"pairs": 3, "k": 3}), ("bpc-fkl", {"draws": 3})])
def test_processes_share_the_pairs_and_draws_of_methods_with_experts(
    tmp_path: Path, method: str, options: dict[str, Any]
) -> None:
    store = attar.experts(DIGITS, NETWORK, Schedule(trajectories=2), folder=tmp_path)
    one, two = (reduced(method, options, processes, steps=5, experts=store) for processes in (1, 2))
    assert torch.allclose(one.data.x, two.data.x, rtol=0, atol=1e-5)
    with pytest.raises(AttarError, match="set pairs to 2 or more"):
        reduced("bpc-cd", {"pairs": 1}, 2, experts=store)


def test_a_shared_run_resumes_and_counts_the_time_of_all(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"

    def stop(steps: Iterator[Step]) -> Iterator[Step]:
        for step in steps:
            yield step
            if step.number == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reduced("dm", RUNS["dm"], 2, 6, checkpoint=path, every=2, observers=[stop])
    assert path.exists()
    again = reduced("dm", RUNS["dm"], 2, 6, checkpoint=path)
    whole = reduced("dm", RUNS["dm"], 2, 6)
    assert torch.equal(again.data.x, whole.data.x)
    assert again.recipe.cost.cpu > 0


def fail(share: Share, given: None) -> None:
    os._exit(3)


def test_a_process_that_ends_is_an_error() -> None:
    with pytest.raises(AttarError, match="Another process of this run ended"), together(2, fail, None) as share:
        share.total(torch.ones(1))


@pytest.mark.parametrize(
    ("method", "processes", "network", "said"),
    [
        ("mtt", 2, NETWORK, "mtt cannot be divided among processes; that of .*dm.* can"),
        ("herding", 2, NETWORK, "herding cannot be divided"),
        ("dm", 11, NETWORK, "set processes to no more than that"),
        ("dm", 2, "convnet-d1w8-batchnorm", "use a network without batch norm"),
        ("dm", 0, NETWORK, "processes must be at least 1"),
    ],
)
def test_what_cannot_be_divided_is_refused(method: str, processes: int, network: str, said: str) -> None:
    with pytest.raises(AttarError, match=said):
        attar.reduce(DIGITS, method, per_class=1, network=network, processes=processes)


def test_shares_cover_everything_once() -> None:
    shares = [Share(rank, 3) for rank in range(3)]
    assert sorted(item for share in shares for item in share.mine(range(10))) == list(range(10))
    assert [row for share in shares for row in range(10)[share.rows(10)]] == list(range(10))
