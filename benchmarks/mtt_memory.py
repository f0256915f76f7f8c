"""Claim: trajectory matching through 50 steps on 100 images fits into 3 GB, and memory grows less than the steps do.

One loss of ``mtt`` with its gradient for each number of steps, ConvNet-D3W32 on 28x28 images, all 100 synthetic images
per step, each in its own process. Peaks are of the whole process; its memory before the loss is given too.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

import attar
from attar.condense.contract import NoState, Task
from attar.condense.mtt import MTT
from attar.core.cost import measure
from attar.core.files import write_json
from attar.engine import keep_freed_memory
from attar.experts import Schedule, experts
from attar.nets.train import Training
from attar.study.results import machine, versions
from benchmarks import RESULTS
from benchmarks.selection import alone

STEPS, PER_CLASS, NETWORK, THREADS = (5, 50, 200), 10, "convnet-d3w32", 1


def main(steps: tuple[int, ...] = STEPS) -> list[Path]:
    """Measure and write one JSON file."""
    runs = {str(number): alone(_loss, number) for number in steps}
    path = RESULTS / "mtt_memory" / "mtt_memory.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks mtt_memory",
            "setting": {"network": NETWORK, "images": 10 * PER_CLASS, "shape": [1, 28, 28], "threads": THREADS},
            "steps": runs,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _loss(steps: int) -> dict[str, Any]:
    """Peak memory and seconds of a loss and its gradient through this many steps."""
    torch.set_num_threads(THREADS)
    keep_freed_memory()
    train = attar.load("fashion-mnist").train[:512]
    net, gen = attar.network(NETWORK, train.shape, train.classes), torch.Generator().manual_seed(0)
    method = MTT(net_steps=steps)
    with tempfile.TemporaryDirectory() as folder:
        short = Training(steps=1, batch=64)
        store = experts(train, NETWORK, Schedule(1, 1, short), folder=folder)
        task = Task(train, net, train.classes, store)
        source = method.source(train.sample_per_class(PER_CLASS, gen), gen)
        with measure() as before:
            pass
        with measure() as spent:
            method.loss(source(), NoState(), task, gen).value.backward()
    return {"peak_bytes": spent.memory, "before_bytes": before.memory, "wall": spent.wall, "cpu": spent.cpu}
