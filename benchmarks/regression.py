"""Question: how fast are the measured jobs beside an earlier commit, and networks beside plain PyTorch?

The environment variable ``BASE`` names a checkout of the earlier commit, for example
``git worktree add ../base e9d7012``; without it only the second question is answered. Each checkout has a process with
one thread that stays; the two take short turns in changing order, and the fewest processor seconds of each count. A
second pair of processes repeats everything, as the addresses of memory matter too. The jobs are those of the benchmarks
``training``, ``condense_step``, ``pseudo_coreset_step``, ``selection`` and ``chains``, with fewer inner steps.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Generator, nn
from torch.nn.functional import cross_entropy

import attar
from attar.core.files import write_json, write_tensors
from attar.data import Data
from attar.engine import keep_freed_memory
from attar.nets.train import Trainer, Training
from attar.study.results import machine, versions
from benchmarks import RESULTS, _jobs
from benchmarks._jobs import JOBS

HERE, ROUNDS, TURN = Path(__file__).parents[1], 6, 1.0  # seconds of a turn, or one step
#: Pairs of processes; wall-clock seconds of a job in each, and at least this many rounds.
PAIRS, SECONDS, LEAST = 2, 15.0, 2
#: Network, shape of an image, batch sizes.
NETWORKS = {
    "mlp": ((1, 28, 28), (100, 256)),
    "lenet": ((1, 28, 28), (100, 256)),
    "convnet-d3w32": ((1, 28, 28), (100, 256)),
    "alexnet": ((3, 32, 32), (100,)),
    "vgg11": ((3, 32, 32), (100,)),
    "resnet18": ((3, 32, 32), (100,)),
}


def main() -> list[Path]:
    """Measure and write one JSON file for each question."""
    about = {"versions": versions(), "machine": machine()}
    networks = {
        "command": "python -m benchmarks regression",
        "setting": {"rounds": ROUNDS, "threads": 1},
        "plain_pytorch": {name: _networks(name, ROUNDS) for name in NETWORKS},
    }
    found = {"networks": networks}
    if base := os.environ.get("BASE"):
        found["regression"] = {
            "command": "BASE=<checkout of the earlier commit> python -m benchmarks regression",
            "setting": {"pairs_of_processes": PAIRS, "threads": 1, "base": _commit(base)},
            "jobs": against(Path(base)),
        }
    paths = {name: RESULTS / "regression" / f"{name}.json" for name in found}
    for name, result in found.items():
        write_json(paths[name], result | about)
    return list(paths.values())


def against(base: Path) -> dict[str, Any]:
    """Every job in both checkouts, in turns."""
    train = attar.load("fashion-mnist").train.sample_per_class(512, Generator().manual_seed(0))
    rounds: dict[str, list[tuple[float, float]]] = {job: [] for job in JOBS}
    with tempfile.TemporaryDirectory() as folder:
        images = Path(folder) / "images.safetensors"
        write_tensors(images, {"x": train.x, "y": train.y}, {})
        for _ in range(PAIRS):
            with _process(base, images) as old, _process(HERE, images) as new:
                for job, found in rounds.items():
                    found += _rounds(job, old, new)
    return {job: _summary(found) for job, found in rounds.items()}


def _rounds(job: str, old: subprocess.Popen[str], new: subprocess.Popen[str]) -> list[tuple[float, float]]:
    """Processor seconds of both sides, which change their order in every round."""
    found = [(_ask(old, job), _ask(new, job))]
    until = time.monotonic() + SECONDS
    while time.monotonic() < until or len(found) < LEAST:
        second, first = _ask(new, job), _ask(old, job)
        found += [(first, second), (_ask(old, job), _ask(new, job))]
    return found


def _summary(rounds: list[tuple[float, float]]) -> dict[str, Any]:
    """The ratio of the fewest seconds; the median ratio of the rounds beside it shows the noise."""
    before, after = ([found[side] for found in rounds] for side in (0, 1))
    return {
        "times_faster": min(before) / min(after),
        "median_of_rounds": median(old / new for old, new in rounds),
        "cpu_seconds": {"before": before, "after": after},
    }


def _process(checkout: Path, images: Path) -> subprocess.Popen[str]:
    one = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": f"{checkout / 'src'}:{checkout}"}
    command, pipe = [sys.executable, "-P", str(_jobs.__file__), str(images)], subprocess.PIPE
    return subprocess.Popen(command, cwd=checkout, env=os.environ | one, stdin=pipe, stdout=pipe, text=True)


def _ask(process: subprocess.Popen[str], job: str) -> float:
    """Processor seconds of one turn."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{job}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _networks(name: str, rounds: int) -> dict[str, Any]:
    """The training engine beside a plain loop over the same module, in turns, for every batch size."""
    shape, batches = NETWORKS[name]
    found = {}
    for batch in batches:
        ways = _ways(name, shape, batch)
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds + 1):
            for way, step in ways.items():
                seconds[way].append(_turn(step))
        best = {way: min(all_[1:]) for way, all_ in seconds.items()}  # the first round warms up
        found[f"batch {batch}"] = {"times_faster": best["plain"] / best["engine"], "cpu_seconds": best}
    return found


def _ways(name: str, shape: tuple[int, ...], batch: int) -> dict[str, Callable[[], object]]:
    torch.set_num_threads(1)
    keep_freed_memory()
    gen = Generator().manual_seed(0)
    data = Data(torch.randn(4 * batch, *shape, generator=gen), torch.arange(4 * batch) % 10)
    network = attar.network(name, shape, 10)
    training = Training(steps=10_000, batch=batch, lr=1e-4)
    trainer = Trainer(network, data, training, network.init(gen)[None])
    module: nn.Module = network._build()
    optimiser = torch.optim.SGD(module.parameters(), lr=1e-4, momentum=0.9, weight_decay=training.weight_decay)

    def plain() -> None:
        index = torch.randperm(len(data), generator=gen)[:batch]
        optimiser.zero_grad()
        cross_entropy(module(data.x[index]), data.y[index]).backward()
        optimiser.step()

    return {"plain": plain, "engine": lambda: trainer.step(gen)}


def _turn(step: Callable[[], object]) -> float:
    """Processor seconds of the fastest step of a turn."""
    times: list[float] = []
    while sum(times) < TURN:
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    return min(times)


def _commit(checkout: str) -> str:
    command = ["git", "-C", checkout, "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
