"""Claim: a step of gradient matching takes two thirds of the time of a loop over classes or less, at the same loss.

DC and DSA at 10 per class on 28x28 images, ConvNet-D3W32, 256 real images a class: a match of all classes with an
update, and a whole step, which also has the paper's 50 network steps on the synthetic images. The loop follows the
published code: PyTorch's own layers, one class after the other, default memory allocation; the same loop with freed
memory kept is faster, and is measured too. Both sides use the same images and augmentations. Processes alternate, so
that other load on the machine affects both equally, and the fastest step of each counts. Rounding errors in float32 are
amplified by ReLUs near zero and by 50 network steps; so the losses are compared in float64, and each side in float32
with its own float64 loss.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

import attar
from attar.condense.contract import Task
from attar.condense.dc import DC, DCState
from attar.condense.dsa import DSA
from attar.core.files import read_tensors, write_json, write_tensors
from attar.data import Data, augment
from attar.engine import keep_freed_memory
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK

CLASSES, PER_CLASS, BATCH, WIDTH, STEPS, ROUNDS = 10, 10, 256, 32, 2, 2
NETWORK, SHAPE = f"convnet-d3w{WIDTH}", (1, 28, 28)
STRATEGIES = {"dc": "none", "dsa": augment.DSA}
PARTS = {"match": 0, "step": 50}  # network steps in each
IMAGES = WORK / "condense_step.safetensors"

Once = Callable[[Tensor, Data, Generator], tuple[Tensor, Tensor]]  # images, data, gen → loss, gradient of the images


def main(rounds: int = ROUNDS) -> list[Path]:
    """Measure and write one JSON file."""
    train = attar.load("fashion-mnist").train.sample_per_class(2 * BATCH, Generator().manual_seed(0))
    write_tensors(IMAGES, {"x": train.x, "y": train.y}, {})
    result = {
        "command": "python -m benchmarks condense_step",
        "setting": {"network": NETWORK, "per_class": PER_CLASS, "batch": BATCH, "net_steps": PARTS},
        "methods": {name: {part: compare(name, rounds, steps) for part, steps in PARTS.items()} for name in STRATEGIES},
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / "condense_step" / "condense_step.json"
    write_json(path, result)
    return [path]


def compare(method: str, rounds: int, net_steps: int) -> dict[str, Any]:
    """Both sides alternately: the speed-up, the difference of the losses, and the effect of rounding."""
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, runs in found.items():
            runs.append(_in_process(way, method, net_steps, "float32"))
    best = {way: {c: min(min(run[c]) for run in runs) for c in ("wall", "cpu")} for way, runs in found.items()}
    exact = {way: _in_process(way, method, net_steps, "float64")["losses"] for way in ("plain", "ours")}
    rounded = {way: runs[0]["losses"] for way, runs in found.items()}
    return {
        "times_faster": {
            way: {clock: best[way][clock] / best["ours"][clock] for clock in ("wall", "cpu")}
            for way in WAYS
            if way != "ours"
        },
        "seconds": best,
        "largest_gap_of_losses": {
            "float64": _gap(exact["ours"], exact["plain"]),
            "rounding": {way: _gap(rounded[way], exact[way]) for way in exact},
        },
        "losses": {"float32": rounded, "float64": exact},
        "all_seconds": {way: [run["wall"] for run in runs] for way, runs in found.items()},
    }


def _gap(a: list[float], b: list[float]) -> float:
    return max(abs(one - other) / other for one, other in zip(a, b, strict=True))


def work(way: str, method: str, net_steps: int, dtype: str) -> dict[str, Any]:
    """One process: steps with their times and losses."""
    tensors, _ = read_tensors(IMAGES)
    start = attar.network(NETWORK, SHAPE, CLASSES).init(Generator().manual_seed(2))  # the same in either precision
    torch.set_default_dtype(getattr(torch, dtype))
    data, start = Data(tensors["x"].to(torch.get_default_dtype()), tensors["y"]), start.to(torch.get_default_dtype())
    syn = data.sample_per_class(PER_CLASS, Generator().manual_seed(1)).x
    once, losses, wall, cpu = WAYS[way](method, start, net_steps), [], [], []
    for number in range(STEPS + 1):
        before = time.perf_counter(), time.process_time()
        loss, slope = once(syn, data, Generator().manual_seed(number))
        syn = syn - 0.1 * slope
        wall.append(time.perf_counter() - before[0])
        cpu.append(time.process_time() - before[1])
        losses.append(float(loss))
    return {"losses": losses, "wall": wall[1:], "cpu": cpu[1:]}  # the first includes one-time set-up


def kept(method: str, start: Tensor, net_steps: int) -> Once:
    """The published loop, with freed memory kept."""
    keep_freed_memory()
    return plain(method, start, net_steps)


def ours(method: str, start: Tensor, net_steps: int) -> Once:
    """The library's step, from the same network every time."""
    keep_freed_memory()
    network = attar.network(NETWORK, SHAPE, CLASSES)
    matching = DC(BATCH, net_steps=net_steps) if method == "dc" else DSA(BATCH, net_steps=net_steps)

    def once(x: Tensor, data: Data, gen: Generator) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        loss = matching.loss(Data(x, _labels()), DCState(start, 1), Task(data, network, CLASSES), gen).value
        return loss.detach(), torch.autograd.grad(loss, x)[0]

    return once


def plain(method: str, start: Tensor, net_steps: int) -> Once:
    """The published loop: train the network on the images, then match class by class."""
    layers: list[nn.Module] = []
    for inside, pad in ((1, 3), (WIDTH, 1), (WIDTH, 1)):
        norm = nn.GroupNorm(WIDTH, WIDTH)
        layers += [nn.Conv2d(inside, WIDTH, 3, padding=pad), norm, nn.ReLU(inplace=True), nn.AvgPool2d(2)]
    network = nn.Sequential(*layers, nn.Flatten(), nn.Linear(WIDTH * 4 * 4, CLASSES))
    strategy, parameters = STRATEGIES[method], list(network.parameters())

    def once(x: Tensor, data: Data, gen: Generator) -> tuple[Tensor, Tensor]:
        nn.utils.vector_to_parameters(start.clone(), parameters)  # the parameters become views of it
        optimiser = torch.optim.SGD(parameters, lr=0.01)
        for _ in range(net_steps):
            optimiser.zero_grad()
            cross_entropy(network(augment.jitter(strategy, x.detach(), gen)), _labels()).backward()
            optimiser.step()
        x = x.detach().requires_grad_()
        loss = torch.zeros(())
        for c in range(CLASSES):
            omega = augment.draw(strategy, gen)
            real, fake = data.sample_class(c, BATCH, gen), x[c * PER_CLASS : (c + 1) * PER_CLASS]
            theirs = torch.autograd.grad(cross_entropy(network(omega(real.x)), real.y), parameters)
            labels = torch.full((PER_CLASS,), c)
            mine = torch.autograd.grad(cross_entropy(network(omega(fake)), labels), parameters, create_graph=True)
            for a, b in zip(theirs, mine, strict=True):
                loss = loss + _distance(a.detach().clone(), b)
        loss.backward()
        assert x.grad is not None
        return loss.detach(), x.grad

    return once


WAYS = {"plain": plain, "plain, memory kept": kept, "ours": ours}


def _distance(a: Tensor, b: Tensor) -> Tensor:
    if a.ndim < 2:
        return a.new_zeros(())
    a, b = a.reshape(a.shape[0], -1), b.reshape(b.shape[0], -1)
    similarity: Tensor = (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1) + 0.000001)
    return torch.sum(1 - similarity)


def _labels() -> Tensor:
    return torch.arange(CLASSES).repeat_interleave(PER_CLASS)


def _in_process(way: str, method: str, net_steps: int, dtype: str) -> dict[str, Any]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    call = f"work({way!r}, {method!r}, {net_steps}, {dtype!r})"
    code = f"import json; from benchmarks.condense_step import work; print(json.dumps({call}))"
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    run: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return run
