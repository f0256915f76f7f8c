"""Several processes that compute one run together."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import attar
from attar.condense.driver import Step
from attar.core.errors import AttarError
from attar.data import Data
from attar.engine.share import Share, link, together
from attar.experts import Schedule, Trajectories

DIGITS = attar.load("digits").train[:400]
NETWORK = "convnet-d1w8"
OPTIONS: dict[str, dict[str, Any]] = {
    "dm": {"batch": 16},
    "dc": {"batch": 16, "matches": 3, "net_steps": 4},
    "vbpc": {"batch": 64, "pool": 2, "net_steps": 10, "flips": True},
    "cafe": {"batch": 16, "net_steps": 4, "query": 4},
    "dsa": {"batch": 16, "matches": 3, "net_steps": 4},
    "lcmat-c": {"batch": 16, "matches": 3, "net_steps": 2},
    "kip": {"batch": 64},
    "frepo": {"batch": 64, "pool": 2, "net_steps": 10},
    "bpc-cd": {"pairs": 3, "k": 3},
    "bpc-fkl": {"draws": 3},
}
QUICK = {method: 50 if method in ("dm", "dc", "vbpc", "kip") else 5 for method in OPTIONS}  #: steps
#: Errors of rounding may grow in the many trainings of bpc-fkl; ``doubled`` is its test after 50 steps.
LONG = {method: 50 for method, steps in QUICK.items() if steps < 50 and method != "bpc-fkl"}


def condensed(share: Share, given: tuple[Path, dict[str, int]]) -> dict[str, tuple[Data, Data, list[Step]]]:
    """The examples of every method before and after so many steps, and its steps."""
    experts, runs = given
    found = {}
    for method, steps in runs.items():
        descent: dict[str, Any] = {"steps": steps, "lr": 0.1}  # high rates would make errors of rounding grow
        if method.startswith("bpc"):  # Adam would divide by gradients near zero
            descent |= {"optimiser": "sgd", "lr": 10.0}
        store = experts if method.startswith("bpc") else None
        decided = attar.plan(
            DIGITS, method, per_class=2, network=NETWORK, options=OPTIONS[method], descent=descent, experts=store
        )
        loop = decided.condensation(share=share)
        done = list(loop)
        found[method] = loop.first, loop.examples, done
    return found


class Doubled(Trajectories):
    """Experts in float64."""

    def vector(self, trajectory: int, epoch: float) -> Tensor:
        return super().vector(trajectory, epoch).double()


def doubled(share: Share, folder: Path) -> tuple[Data, Data]:
    """The examples of bpc-fkl before and after 50 steps in float64."""
    descent: dict[str, Any] = {"steps": 50, "optimiser": "sgd", "lr": 10.0}
    options = OPTIONS["bpc-fkl"] | {"net_steps": 5}
    given: dict[str, Any] = {"options": options, "descent": descent, "experts": folder}
    loop = attar.plan(DIGITS, "bpc-fkl", per_class=2, network=NETWORK, **given).condensation(share=share)
    loop.source.double()
    loop.task = loop.task._replace(experts=Doubled(folder, loop.task.trajectories.manifest))
    for _ in loop:
        pass
    return loop.first, loop.examples


def faults(share: Share, count: int) -> Tensor:
    """Pages that the system hands out in each process for a large block that was freed before, on average."""
    for _ in range(20):  # the heap grows by some blocks until one that was freed is large enough for the next, aligned
        torch.ones(count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(count)
    each = torch.zeros(share.size)
    each[share.rank] = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 10
    return share.total(each)


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc is told to keep memory")
def test_every_other_process_keeps_freed_memory_for_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attar.engine.share.get_context", multiprocessing.get_context)  # new processes, as for users
    count = 2**24  # 64 MB
    with together(2, faults, count) as share:
        _, other = faults(share, count).tolist()
    assert other < 4 * count / resource.getpagesize() / 10


@pytest.mark.parametrize("runs", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)], ids=["quick", "long"])
def test_two_processes_give_the_same_examples_as_one(runs: dict[str, int], tmp_path: Path) -> None:
    attar.experts(DIGITS, NETWORK, Schedule(trajectories=2), folder=tmp_path)
    given = tmp_path, runs
    alone = condensed(Share(), given)
    with together(2, condensed, given) as share:
        shared = condensed(share, given)
    for method, (first, one, steps) in alone.items():
        _, two, others = shared[method]
        assert not torch.allclose(first.x, one.x, atol=1e-3), method
        assert torch.allclose(one.x, two.x, rtol=0, atol=1e-5), method
        assert torch.allclose(one.y.double(), two.y.double(), rtol=0, atol=1e-5), method
        for ours, theirs in zip(steps, others, strict=True):
            assert ours.loss == pytest.approx(theirs.loss, rel=1e-3, abs=1e-4), method
            assert ours.metrics == pytest.approx(theirs.metrics, rel=1e-3, abs=1e-4), method


def test_forward_divergence_differs_by_rounding_only(tmp_path: Path) -> None:
    attar.experts(DIGITS, NETWORK, Schedule(trajectories=2), folder=tmp_path)
    first, one = doubled(Share(), tmp_path)
    with together(2, doubled, tmp_path) as share:
        _, two = doubled(share, tmp_path)
    assert two.x.dtype == torch.float64
    assert not torch.allclose(first.x.double(), one.x, atol=1e-3)
    assert torch.allclose(one.x, two.x, rtol=0, atol=1e-12)


def reduced(processes: int, **more: Any) -> attar.Coreset:
    options, descent = {"batch": 16}, {"steps": 6}
    return attar.reduce(
        DIGITS, "dm", per_class=1, network=NETWORK, options=options, descent=descent, processes=processes, **more
    )


def test_a_shared_run_resumes_and_counts_the_time_of_all(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"

    def stop(steps: Iterable[Step]) -> Iterator[Step]:
        for step in steps:
            yield step
            if step.number == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reduced(2, checkpoint=path, every=2, observers=[stop])
    assert path.exists()
    again = reduced(2, checkpoint=path)
    assert torch.allclose(again.data.x, reduced(1).data.x, rtol=0, atol=1e-5)
    assert again.recipe.cost.cpu > 0


def fail(share: Share, given: None) -> None:
    os._exit(3)


def test_a_process_that_ends_is_an_error() -> None:
    with pytest.raises(AttarError, match="Another process of this run ended"), together(2, fail, None) as share:
        share.total(torch.ones(1))


CANNOT = (
    r"^The work of {method} cannot be divided among processes{why}: leave processes out, or choose a method whose work "
    r"can \(cafe, dc, dm, dsa, frepo, kip, lcmat-c, bpc-cd, bpc-fkl, vbpc\)\.$"
)


@pytest.mark.parametrize(
    ("method", "processes", "network", "said"),
    [
        ("dd", 2, NETWORK, CANNOT.format(method="dd", why="")),
        ("herding", 2, NETWORK, CANNOT.format(method="herding", why="")),
        ("bpc-rkl", 2, NETWORK, CANNOT.format(method="bpc-rkl", why=", as a step has no experts .*")),
        ("dm", 11, NETWORK, "set processes to no more than that"),
        ("dm", 2, "convnet-d1w8-batch", "use a network without batch norm"),
        ("dm", 0, NETWORK, "processes must be at least 1"),
    ],
)
def test_what_cannot_be_divided_is_refused(method: str, processes: int, network: str, said: str) -> None:
    with pytest.raises(AttarError, match=said):
        attar.reduce(DIGITS, method, per_class=1, network=network, processes=processes)


def test_bpc_w_cannot_be_divided_either(tmp_path: Path) -> None:
    store = attar.experts(DIGITS, NETWORK, Schedule(trajectories=1), folder=tmp_path)
    with pytest.raises(AttarError, match=CANNOT.format(method="bpc-w", why=", as a step has one pair .*")):
        attar.reduce(DIGITS, "bpc-w", per_class=1, network=NETWORK, experts=store, processes=2)


@pytest.mark.parametrize(
    ("device", "rank", "gpus", "nccl", "found"),
    [
        ("cpu", 1, 2, True, ("gloo", "cpu")),
        ("cuda:0", 1, 2, True, ("nccl", "cuda:1")),
        ("cuda:1", 1, 2, True, ("nccl", "cuda:0")),
        ("cuda:0", 1, 1, True, ("gloo", "cuda:0")),  # nccl refuses two processes on one GPU
        ("cuda:0", 1, 2, False, ("gloo", "cuda:0")),
    ],
)
def test_processes_with_a_gpu_each_speak_by_nccl(
    device: str, rank: int, gpus: int, nccl: bool, found: tuple[str, str]
) -> None:
    backend, own = link(torch.device(device), Share(rank, 2), gpus, nccl)
    assert (backend, str(own)) == found


def test_pairs_that_are_too_few_for_the_processes_are_refused(tmp_path: Path) -> None:
    store = attar.experts(DIGITS, NETWORK, Schedule(trajectories=1), folder=tmp_path)
    decided = attar.plan(DIGITS, "bpc-cd", per_class=1, network=NETWORK, experts=store)
    with pytest.raises(AttarError, match="set pairs to 2 or more"):
        decided.condensation(share=Share(0, 2))


def test_shares_cover_everything_once() -> None:
    shares = [Share(rank, 3) for rank in range(3)]
    assert [row for share in shares for row in range(10)[share.rows(10)]] == list(range(10))
