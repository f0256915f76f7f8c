"""Claim: on a small network, sixteen chains at once take an eighth of the time of one after the other.

Langevin chains on 100 digits. One after the other is measured twice: with the library's own code, and with a gradient
as one would write it by hand for a single chain, which is the harder one to beat. The wider network shows where the
gain ends: its arithmetic, which is not less at once, outweighs the overhead that the chains share. Rounds
alternate, in one thread, and processor seconds are counted, so that other load on the machine affects both sides
equally.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy

import attar
from attar.core.files import write_json
from attar.data import Data
from attar.engine import keep_freed_memory
from attar.infer.langevin import Langevin
from attar.infer.potential import NetworkPotential, Potential, Prior, Whitened
from attar.study.results import machine, versions
from benchmarks import RESULTS

CHAINS, TRANSITIONS, ROUNDS, NETWORKS = 16, 50, 9, ("mlp-d2w32", "mlp-d2w128")


class ByHand(NetworkPotential):
    """The same potential for one chain, by plain autograd."""

    def gradient(self, theta: Tensor, gen: Generator) -> Tensor:
        row, data = theta[0].detach().requires_grad_(), self.batches.all()
        loss = cross_entropy(self.objective.network(row, data.x), data.y)
        total = self.examples * loss + self.prior.minus_log(row)
        return torch.autograd.grad(total, row)[0][None]


def main() -> list[Path]:
    """Measure and write one JSON file."""
    keep_freed_memory()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = {name: _compare(name) for name in NETWORKS}
    finally:
        torch.set_num_threads(threads)
    result = {
        "command": "python -m benchmarks chains",
        "setting": {"chains": CHAINS, "transitions": TRANSITIONS, "examples": 100, "threads": 1},
        "networks": found,
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / "chains" / "chains.json"
    write_json(path, result)
    return [path]


def _compare(name: str) -> dict[str, Any]:
    """Processor seconds of every round, and how many times longer a loop over chains takes."""
    gen = torch.Generator().manual_seed(0)
    data = attar.load("digits").train.map(lambda x: x.flatten(1)).sample_per_class(10, gen)
    ways = _ways(name, data, gen)
    for work in ways.values():
        work()  # the first call includes one-time set-up
    rounds = [{way: _seconds(work) for way, work in ways.items()} for _ in range(ROUNDS)]
    seconds = {way: {"median": median(r[way] for r in rounds), "all": [r[way] for r in rounds]} for way in ways}
    ratios = {way: median(r[way] / r["together"] for r in rounds) for way in ways if way != "together"}
    return {"cpu_seconds": seconds, "times_longer_than_together": ratios}


def _ways(name: str, data: Data, gen: Generator) -> dict[str, Callable[[], None]]:
    network = attar.network(name, data.shape, data.classes)
    prior, sampler = Prior(network), Langevin(warmup=0, thin=TRANSITIONS)
    start = prior.whiten(torch.stack([network.init(gen) for _ in range(CHAINS)]))

    def walk(potential: Potential, rows: int) -> None:
        for part in start.split(rows):
            sampler.run(Whitened(potential, prior), part, len(part), gen)

    ours, by_hand = NetworkPotential(network, data, prior), ByHand(network, data, prior)
    return {
        "together": lambda: walk(ours, CHAINS),
        "one_by_one": lambda: walk(ours, 1),
        "one_by_one_by_hand": lambda: walk(by_hand, 1),
    }


def _seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
