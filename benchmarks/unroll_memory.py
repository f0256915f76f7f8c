"""Claim: memory of unrolled methods grows like the root of the steps, and time is at most 1.6 times the plain unroll.

One loss of ``dd`` with its gradient for each number of steps: LeNet on 28x28 images, ten a step. Once as the library
does it, and once with the graph of all steps kept, as autograd does on its own. Memory is the peak beyond that before
the loss, each in its own process; times are processor seconds in alternating rounds, the least of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

import attar
from attar.condense import trajectory
from attar.condense.contract import NoState, Task
from attar.condense.dd import DD
from attar.condense.unroll import Step, unroll
from attar.core.cost import Cost, measure
from attar.core.files import write_json
from attar.engine import keep_freed_memory
from attar.study.results import machine, versions
from benchmarks import RESULTS
from benchmarks.selection import alone

STEPS, NETWORK, THREADS, ROUNDS = (10, 40, 160), "lenet", 1, 5


def plain(step: Step, theta: Tensor, inputs: tuple[Tensor, ...], steps: int) -> Tensor:
    """The same as ``unroll`` with the graph of all steps."""
    theta = theta.detach().requires_grad_()
    for number in range(steps):
        theta = step(number, theta, *inputs)
    return theta


WAYS = {"attar": unroll, "graph kept": plain}


def main(steps: tuple[int, ...] = STEPS) -> list[Path]:
    """Measure and write one JSON file."""
    memory = {way: {str(number): alone(_memory, way, number) for number in steps} for way in WAYS}
    cpu = {str(number): alone(_times, number) for number in steps}
    first, last = (memory["attar"][str(number)] for number in (steps[0], steps[-1]))
    path = RESULTS / "unroll_memory" / "unroll_memory.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks unroll_memory",
            "setting": {"network": NETWORK, "images": 10, "shape": [1, 28, 28], "threads": THREADS, "rounds": ROUNDS},
            "bytes": memory,
            "memory_growth": {"attar": last / first, "root of the steps": (steps[-1] / steps[0]) ** 0.5},
            "cpu_seconds": cpu,
            "cpu_ratio": {number: found["attar"] / found["graph kept"] for number, found in cpu.items()},
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _memory(way: str, steps: int) -> int:
    """Peak memory of a loss and its gradient beyond that before, in bytes."""
    task = _task()
    _loss(way, 2, task)  # what is set up once
    with measure() as before:
        pass
    return _loss(way, steps, task).memory - before.memory


def _times(steps: int) -> dict[str, float]:
    task = _task()
    rounds = [{way: _loss(way, steps, task).cpu for way in WAYS} for _ in range(ROUNDS)]
    return {way: min(found[way] for found in rounds) for way in WAYS}


def _task() -> Task:
    torch.set_num_threads(THREADS)
    keep_freed_memory()
    train = attar.load("fashion-mnist").train[:512]
    return Task(train, attar.network(NETWORK, train.shape, train.classes), train.classes)


def _loss(way: str, steps: int, task: Task) -> Cost:
    """The cost of one loss and its gradient, with one batch of ten images for all steps."""
    gen = torch.Generator().manual_seed(0)
    method = DD(epochs=steps, inits=1, batch=10)
    source: Any = method.source(task.data.sample_per_class(1, gen), gen)
    with patch.object(trajectory, "unroll", WAYS[way]), measure(every=0.002) as spent:
        method.loss(source(), NoState(), task, gen).value.backward()
    return spent
