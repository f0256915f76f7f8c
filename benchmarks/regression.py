"""Question: how fast are the measured jobs beside an earlier commit, and networks beside plain PyTorch?

The environment variable ``BASE`` names a checkout of the earlier commit, for example
``git worktree add ../base e9d7012``; without it only the second question is answered. The checkouts take turns, each
in a process of its own with one thread, and the fewest processor seconds of each count. The jobs are those of the
benchmarks ``training``, ``condense_step``, ``pseudo_coreset_step``, ``selection`` and ``chains``.
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
from torch import Generator, nn
from torch.nn.functional import cross_entropy

import attar
from attar.core.files import write_json, write_tensors
from attar.data import Data
from attar.engine import keep_freed_memory
from attar.nets.train import Trainer, Training
from attar.study.results import machine, versions
from benchmarks import RESULTS

HERE, ROUNDS, TURN = Path(__file__).parents[1], 6, 1.0  # seconds of a turn, or one step
#: What a child process evaluates, in either checkout; it gives processor seconds.
JOBS = {
    "training, convnet-d3w128": "min(training.work('engine', 1)['cpu'])",
    "condense_step, dc": "min(condense_step.work('ours', 'dc', 50, 'float32')['cpu'])",
    "condense_step, dsa": "min(condense_step.work('ours', 'dsa', 50, 'float32')['cpu'])",
    "pseudo_coreset_step, vbpc": "run('vbpc', 0)['step']",
    "pseudo_coreset_step, bpc-cd, k = 50": "run('free', 50)['cpu']",
    "selection, facility location": "min(selection._compare(5000, 100, 3)['cpu_seconds']['attar']['all'])",
    "chains, mlp-d2w32": "min(chains._compare('mlp-d2w32')['cpu_seconds']['together']['all'])",
    "chains, mlp-d2w128": "min(chains._compare('mlp-d2w128')['cpu_seconds']['together']['all'])",
}
CHILD = """
import contextlib, io, json, sys, torch
torch.set_num_threads(1)
from benchmarks import chains, condense_step, pseudo_coreset_step, selection, training
def run(kind, k):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        pseudo_coreset_step.child(kind, k)
    return json.loads(out.getvalue())
print(json.dumps(eval(sys.argv[1])))
"""
#: Network, shape of an image, batch sizes.
NETWORKS = {
    "mlp": ((1, 28, 28), (100, 256)),
    "lenet": ((1, 28, 28), (100, 256)),
    "convnet-d3w32": ((1, 28, 28), (100, 256)),
    "alexnet": ((3, 32, 32), (100,)),
    "vgg11": ((3, 32, 32), (100,)),
    "resnet18": ((3, 32, 32), (100,)),
}


def main(rounds: int = ROUNDS) -> list[Path]:
    """Measure and write one JSON file."""
    base = os.environ.get("BASE")
    result = {
        "command": "BASE=<checkout of the earlier commit> python -m benchmarks regression",
        "setting": {"rounds": rounds, "threads": 1, "base": _commit(base) if base else None},
        "jobs": _against(Path(base), rounds) if base else {},
        "plain_pytorch": {name: _networks(name, rounds) for name in NETWORKS},
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / "regression" / "regression.json"
    write_json(path, result)
    return [path]


def _against(base: Path, rounds: int) -> dict[str, Any]:
    """Every job in both checkouts, in turns."""
    train = attar.load("fashion-mnist").train.sample_per_class(512, Generator().manual_seed(0))
    for checkout in (base, HERE):
        for name, data in (("training", train[:1280]), ("condense_step", train)):
            write_tensors(checkout / "build" / "benchmarks" / f"{name}.safetensors", {"x": data.x, "y": data.y}, {})
    return {job: _job(call, base, rounds) for job, call in JOBS.items()}


def _job(call: str, base: Path, rounds: int) -> dict[str, Any]:
    runs: dict[str, list[float]] = {"before": [], "after": []}
    for _ in range(rounds):
        for side, checkout in (("before", base), ("after", HERE)):
            runs[side].append(_child(checkout, call))
    best = {side: min(found) for side, found in runs.items()}
    return {"times_faster": best["before"] / best["after"], "cpu_seconds": runs}


def _child(checkout: Path, call: str) -> float:
    one = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": f"{checkout / 'src'}:{checkout}"}
    command = [sys.executable, "-c", CHILD, call]
    answer = subprocess.run(command, cwd=checkout, env=os.environ | one, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(answer.stdout.splitlines()[-1]))


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
