"""Claim: a step of dm takes half the time of the published code; one of mtt or bpc-w no more, and a fraction of memory.

10 images per class of 28x28, ConvNet-D3W32; dm with 256 real images per class, mtt and bpc-w through 10 steps on all
images. The other side follows the published code: PyTorch's own layers, dm class by class with a graph of the real
images that is then dropped, mtt and bpc-w with the graph of all steps. It runs with default memory allocation, as
published, and with freed memory kept, as the library does on the command line. Each run is a process of its own with
one thread; rounds alternate, and the fastest processor seconds count. Memory is the peak of a step above that before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

import attar
from attar.bayes.w import BPCW
from attar.condense.contract import Condenser, NoState, Task
from attar.condense.dm import DM
from attar.condense.mtt import MTT
from attar.condense.trajectory import distance, stretch
from attar.core.cost import measure, resident
from attar.core.files import write_json
from attar.data import Data, augment
from attar.engine import keep_freed_memory
from attar.experts import Schedule, experts
from attar.nets.train import Training
from attar.study.results import machine, versions
from benchmarks import RESULTS

CLASSES, PER_CLASS, BATCH, WIDTH, NET_STEPS, ROUNDS = 10, 10, 256, 32, 10, 3
NETWORK, SHAPE = f"convnet-d3w{WIDTH}", (1, 28, 28)
METHODS: dict[str, Condenser] = {
    "dm": DM(batch=BATCH),
    "mtt": MTT(net_steps=NET_STEPS),
    "bpc-w": BPCW(net_steps=NET_STEPS),
}
WAYS = ("published", "published, memory kept", "attar")
Once = Callable[[Tensor, Generator], Tensor]  # images, gen → loss


def main(rounds: int = ROUNDS) -> list[Path]:
    """Measure and write one JSON file."""
    path = RESULTS / "step_peers" / "step_peers.json"
    setting = {"network": NETWORK, "per_class": PER_CLASS, "batch": BATCH, "net_steps": NET_STEPS, "rounds": rounds}
    write_json(
        path,
        {
            "command": "python -m benchmarks step_peers",
            "setting": setting,
            "methods": {name: _compare(name, rounds) for name in METHODS},
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _compare(method: str, rounds: int) -> dict[str, Any]:
    runs = [{way: _in_process(way, method) for way in WAYS} for _ in range(rounds)]
    best = {way: min(run[way]["cpu"] for run in runs) for way in WAYS}
    memory = {way: min(run[way]["memory"] for run in runs) for way in WAYS}
    return {
        "times_faster": {way: best[way] / best["attar"] for way in WAYS if way != "attar"},
        "bytes": memory,
        "cpu_seconds": {way: [run[way]["cpu"] for run in runs] for way in WAYS},
        "first_loss": {way: runs[0][way]["loss"] for way in WAYS},
    }


def work(way: str, method: str) -> dict[str, float]:
    """One process: the cost of a step and its loss, after one that includes one-time set-up."""
    torch.set_num_threads(1)
    if way != "published":
        keep_freed_memory()
    gen = Generator().manual_seed(0)
    data = Data(torch.randn(2 * BATCH * CLASSES, *SHAPE, generator=gen), torch.arange(2 * BATCH * CLASSES) % CLASSES)
    syn = data.sample_per_class(PER_CLASS, gen)
    with tempfile.TemporaryDirectory() as folder:
        store = experts(data[:512], NETWORK, Schedule(1, 1, Training(steps=1, batch=64)), folder=folder)
        task = Task(data, attar.network(NETWORK, SHAPE, CLASSES), CLASSES, store)
        once = _ours(METHODS[method], syn, task) if way == "attar" else _published(method, syn, task)
        before = resident()
        with measure(every=0.005) as first:
            _step(once, syn.x, 1)
        with measure() as cost:
            loss = _step(once, syn.x, 2)
    return {"cpu": cost.cpu, "memory": first.memory - before, "loss": loss}


def _step(once: Once, x: Tensor, seed: int) -> float:
    x = x.clone().requires_grad_()
    loss = once(x, Generator().manual_seed(seed))
    loss.backward()
    return loss.item()


def _ours(method: Condenser, syn: Data, task: Task) -> Once:
    source: Any = method.source(syn, Generator().manual_seed(0))

    def once(x: Tensor, gen: Generator) -> Tensor:
        return method.loss(source().map(lambda _: x), NoState(), task, gen).value

    return once


def _published(method: str, syn: Data, task: Task) -> Once:
    layers: list[nn.Module] = []
    for inside, pad in ((1, 3), (WIDTH, 1), (WIDTH, 1)):
        norm = nn.GroupNorm(WIDTH, WIDTH)
        layers += [nn.Conv2d(inside, WIDTH, 3, padding=pad), norm, nn.ReLU(inplace=True), nn.AvgPool2d(2)]
    body = nn.Sequential(*layers, nn.Flatten())
    network = nn.Sequential(*body, nn.Linear(WIDTH * 4 * 4, CLASSES))
    parameters = dict(network.named_parameters())

    def matching(x: Tensor, gen: Generator) -> Tensor:
        theta = task.network.init(gen)  # a new network every step
        nn.utils.vector_to_parameters(theta, list(parameters.values()))
        loss = torch.zeros(())
        for c in range(CLASSES):
            omega = augment.draw(augment.DSA, gen)
            real, fake = task.data.sample_class(c, BATCH, gen), x[syn.y == c]
            gap = body(omega(real.x)).detach().mean(0) - body(omega(fake)).mean(0)
            loss = loss + gap.square().sum()
        return loss

    def trajectory(x: Tensor, gen: Generator) -> Tensor:
        start, target, _ = stretch(task, 1.0, 0.0, gen)
        size = torch.tensor(METHODS[method].step_size, requires_grad=True)  # type: ignore[attr-defined]
        theta = start.clone().requires_grad_()
        for _ in range(NET_STEPS):
            parts = [part.view_as(old) for part, old in zip(_cut(theta), parameters.values(), strict=True)]
            seen = augment.jitter(augment.DSA, x, gen)
            logits = functional_call(network, dict(zip(parameters, parts, strict=True)), (seen,))
            (slope,) = torch.autograd.grad(cross_entropy(logits, syn.y), theta, create_graph=True)
            theta = theta - size * slope
        return distance(theta, target, start)

    def _cut(theta: Tensor) -> tuple[Tensor, ...]:
        parts: tuple[Tensor, ...] = theta.split([old.numel() for old in parameters.values()])
        return parts

    return matching if method == "dm" else trajectory


def _in_process(way: str, method: str) -> dict[str, Any]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    code = f"import json; from benchmarks.step_peers import work; print(json.dumps(work({way!r}, {method!r})))"
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    run: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return run
