"""Claim: the training engine takes half the time of a plain eager loop, or less, over the same batches.

ConvNet-D3W128 on 28x28 images, batch 256, float32, from the same initialisation. The plain loop uses PyTorch's own
layers and optimiser. Processes alternate, so that other load on the machine affects both sides equally, and the fastest
step of each counts. Both loss curves are recorded and must agree. The machine's rate of matrix products is measured
too, and the share of a step that each kind of operation takes. Utilisation counts the operations of direct convolution,
so an algorithm with fewer multiplications can exceed one. Other variants show the effect of each part of the engine,
and alternatives that were rejected: compilation, without its compile time, and the channels-last memory format.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

import attar
from attar.core.files import read_tensors, write_json, write_tensors
from attar.data import Data
from attar.engine import keep_freed_memory
from attar.nets.fast import winograd
from attar.nets.train import Trainer, Training
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK

BATCH, STEPS, ROUNDS, THREADS = 256, 4, 2, (1, 2)
IMAGES = WORK / "training.safetensors"
TRAINING = Training(steps=STEPS + 1, batch=BATCH, lr=0.01, momentum=0.9, weight_decay=0, schedule="constant")
#: Words in the names of operations, by kind; the first match counts.
KINDS = {
    "convolution": ("conv",),
    "matrix products": ("mm",),
    "norm": ("norm",),
    "activation": ("threshold", "clamp", "relu"),
    "pooling": ("pool",),
    "copies": ("copy", "clone", "cat", "fill", "zero"),
}


def main(rounds: int = ROUNDS) -> list[Path]:
    """Measure and write one JSON file."""
    data = attar.load("fashion-mnist").train[: BATCH * (STEPS + 1)]
    write_tensors(IMAGES, {"x": data.x, "y": data.y}, {})
    result = {
        "command": "python -m benchmarks training",
        "setting": {"network": "convnet-d3w128", "image": [1, 28, 28], "batch": BATCH, "rounds": rounds},
        "gflop_an_image": flops() / 1e9,
        "threads": {str(threads): _compare(threads, rounds) for threads in THREADS},
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / "training" / "training.json"
    write_json(path, result)
    return [path]


def plain_network() -> nn.Sequential:
    """The network with PyTorch's own layers, with parameters in the same order."""
    layers: list[nn.Module] = []
    for inside, pad in ((1, 3), (128, 1), (128, 1)):
        norm = nn.GroupNorm(128, 128)
        layers += [nn.Conv2d(inside, 128, 3, padding=pad), norm, nn.ReLU(), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 4 * 4, 10))


def flops() -> int:
    """Floating-point operations of the forward and backward pass of one image, with direct convolution."""
    with FlopCounterMode(display=False) as counter:
        cross_entropy(plain_network()(torch.zeros(1, 1, 28, 28)), torch.zeros(1, dtype=torch.long)).backward()
    return int(counter.get_total_flops())


def plain_steps(
    x: Tensor, y: Tensor, start: Tensor, prepare: Callable[[nn.Sequential], Any] = lambda network: network
) -> Iterator[Tensor]:
    """Train by hand; yields the loss of every batch."""
    network = plain_network()
    nn.utils.vector_to_parameters(start, network.parameters())
    call = prepare(network)
    optimiser = torch.optim.SGD(network.parameters(), lr=TRAINING.lr, momentum=TRAINING.momentum)
    for part in torch.arange(len(x)).split(BATCH):
        optimiser.zero_grad()
        loss = cross_entropy(call(x[part]), y[part])
        loss.backward()
        optimiser.step()
        yield loss.detach()


def engine_steps(x: Tensor, y: Tensor, start: Tensor) -> Iterator[Tensor]:
    """Train with the engine; yields the loss of every batch."""
    keep_freed_memory()
    trainer = Trainer(attar.network("convnet-d3w128", (1, 28, 28), 10), Data(x, y), TRAINING, start[None])
    for part in torch.arange(len(x)).split(BATCH):
        yield trainer.step(torch.Generator(), part[None])[0]


def direct_steps(x: Tensor, y: Tensor, start: Tensor) -> Iterator[Tensor]:
    """The engine without its fast convolutions."""
    winograd.CHANNELS = sys.maxsize
    return engine_steps(x, y, start)


def kept_steps(
    x: Tensor, y: Tensor, start: Tensor, prepare: Callable[[nn.Sequential], Any] = lambda network: network
) -> Iterator[Tensor]:
    """The plain loop, with freed memory kept."""
    keep_freed_memory()
    return plain_steps(x, y, start, prepare)


def channels_last(network: nn.Sequential) -> nn.Sequential:
    """The network with its kernels, and so its feature maps, in the channels-last memory format."""
    for module in network:
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


WAYS: dict[str, Callable[[Tensor, Tensor, Tensor], Iterator[Tensor]]] = {
    "plain": plain_steps,
    "engine": engine_steps,
    "engine, direct convolutions": direct_steps,
    "plain, memory kept": kept_steps,
    "plain, memory kept, compiled": partial(kept_steps, prepare=torch.compile),
    "plain, memory kept, channels last": partial(kept_steps, prepare=channels_last),
}


def work(way: str, threads: int) -> dict[str, Any]:
    """One process: steps with their times, the machine's rate at the same moment, and a profile of a step."""
    torch.set_num_threads(threads)
    tensors, _ = read_tensors(IMAGES)
    start = attar.network("convnet-d3w128", (1, 28, 28), 10).init(torch.Generator().manual_seed(0))
    steps, losses, wall, cpu = WAYS[way](tensors["x"], tensors["y"], start), [], [], []
    losses.append(float(next(steps)))  # the first includes one-time set-up
    for _ in range(STEPS - 1):
        before = time.perf_counter(), time.process_time()
        losses.append(float(next(steps)))
        wall.append(time.perf_counter() - before[0])
        cpu.append(time.process_time() - before[1])
    with torch.profiler.profile() as profile:
        losses.append(float(next(steps)))
    rates = {str(dtype).removeprefix("torch."): _rate(dtype) for dtype in (torch.float32, torch.bfloat16)}
    return {"losses": losses, "wall": wall, "cpu": cpu, "matmul_flops": rates, "shares": _shares(profile)}


def _compare(threads: int, rounds: int) -> dict[str, Any]:
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, runs in found.items():
            runs.append(_in_process(way, threads))
    best = {
        way: {clock: min(min(run[clock]) for run in runs) for clock in ("wall", "cpu")} for way, runs in found.items()
    }
    rates = {
        dtype: max(run["matmul_flops"][dtype] for runs in found.values() for run in runs)
        for dtype in found["plain"][0]["matmul_flops"]
    }
    return {
        "times_faster_than_plain": {
            way: {clock: best["plain"][clock] / seconds[clock] for clock in ("wall", "cpu")}
            for way, seconds in best.items()
        },
        "images_per_second": {way: BATCH / seconds["wall"] for way, seconds in best.items()},
        "share_of_matmul_rate": {
            way: flops() * BATCH / seconds["wall"] / rates["float32"] for way, seconds in best.items()
        },
        "matmul_flops": rates,
        "largest_gap_of_losses": max(
            abs(a - b)
            for runs in found.values()
            for a, b in zip(found["plain"][0]["losses"], runs[0]["losses"], strict=True)
        ),
        "losses": {way: runs[0]["losses"] for way, runs in found.items()},
        "shares_of_time": {way: runs[0]["shares"] for way, runs in found.items()},
        "seconds": {
            way: {clock: [run[clock] for run in runs] for clock in ("wall", "cpu")} for way, runs in found.items()
        },
    }


def _in_process(way: str, threads: int) -> dict[str, Any]:
    # Spinning threads would slow down both sides on a busy machine.
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    code = f"import json; from benchmarks.training import work; print(json.dumps(work({way!r}, {threads})))"
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    run: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return run


def _rate(dtype: torch.dtype) -> float:
    """Operations per second of matrix products; small ones for bf16, which some CPUs only emulate."""
    side = 1024 if dtype == torch.float32 else 256
    a = torch.ones(side, side, dtype=dtype)
    return 2 * side**3 / min(_seconds(lambda: a @ a) for _ in range(8))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _shares(profile: torch.profiler.profile) -> dict[str, float]:
    """The share of a step that each kind of operation takes."""
    spent: dict[str, float] = {}
    for event in profile.key_averages():
        kind = next((kind for kind, words in KINDS.items() if any(word in event.key for word in words)), "other")
        spent[kind] = spent.get(kind, 0.0) + event.self_cpu_time_total
    total = sum(spent.values())
    return {kind: round(value / total, 4) for kind, value in sorted(spent.items(), key=lambda item: -item[1])}
