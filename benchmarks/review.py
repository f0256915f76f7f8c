"""Claim: four changes that a review of performance asked for save time or memory, with the same results.

Before and after are measured alternately in one run, with settings that restore the old behaviour: torch imported
before attar, so that OpenMP's threads spin; no limit to the activations of a forward pass; an identity matrix on the
meta device; a table of distances of 512 MB at most. The fastest of a few rounds counts. All use one thread except the
first, in which two processes with two threads each share the machine, like the workers of a comparison. "kept" is with
``keep_freed_memory``, as on the command line, and "given back" without it, as in Python.
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

import attar
from attar.condense.contract import Task
from attar.condense.dm import DM
from attar.core.cost import measure, resident
from attar.core.files import write_json
from attar.data import Data
from attar.engine import keep_freed_memory
from attar.infer import Draws
from attar.nets import Network, layers, passes
from attar.nets.train import Training, train
from attar.select.facility import FacilityLocation
from attar.select.greedy import lazy
from attar.select.metrics import GradientDistance
from attar.select.outer import Outer
from attar.select.view import View
from attar.study.results import machine, versions
from benchmarks import RESULTS

ROUNDS, SHAPE, CLASSES = 3, (1, 28, 28), 10
POINTS, FEATURES, PICKS, OLD_TABLE = 20_000, 512, 100, 2**29
SIDES = ("before", "after")
#: Network, and how many images: of each class for dm.
PASSES = {
    "dm step, width 32": ("convnet-d3w32", 256),
    "dm step, width 128": ("convnet-d3w128", 256),
    "View.features": ("convnet-d3w32", 10_000),
    "Draws.predict, 2 draws": ("convnet-d3w128", 2_000),
}


def main(rounds: int = ROUNDS) -> list[Path]:
    """Measure and write one JSON file."""
    result = {
        "command": "python -m benchmarks review",
        "setting": {"shape": SHAPE, "passes": PASSES, "points": POINTS, "features": FEATURES, "picks": PICKS},
        "waiting": _compare("waiting", rounds, at_once=2),
        "first_network": _compare("first_network", rounds),
        "passes": {name: _passes(name, rounds) for name in PASSES},
        "facility_location": _facility(max(1, rounds - 1)),
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / "review" / "review.json"
    write_json(path, result)
    return [path]


def waiting(side: str) -> dict[str, Any]:
    """Wall seconds of a short training in two threads."""
    torch.set_num_threads(2)
    data = Data(torch.randn(512, *SHAPE, generator=Generator().manual_seed(0)), torch.arange(512) % CLASSES)
    network = attar.network("convnet-d3w32", SHAPE, CLASSES)
    start = time.perf_counter()
    train(network, data, Training(steps=10, batch=256), Generator().manual_seed(1))
    return {"seconds": time.perf_counter() - start}


def first_network(side: str) -> dict[str, Any]:
    """Processor seconds of the first network that a process builds, and modules that this imports."""
    if side == "before":
        layers.Halve.__init__ = _halve_before  # type: ignore[method-assign]
    modules, start = len(sys.modules), time.process_time()
    attar.network("convnet", SHAPE, CLASSES)
    return {"seconds": time.process_time() - start, "modules": len(sys.modules) - modules}


def _halve_before(self: layers.Halve, width: int) -> None:
    nn.Module.__init__(self)
    self.out = width // 2
    self.mean = torch.eye(self.out).repeat_interleave(2, 1).repeat(1, 2) / 4


def seconds(name: str, rounds: int, keep: bool) -> dict[str, float]:
    """The fastest processor seconds of each side, measured alternately."""
    torch.set_num_threads(1)
    if keep:
        keep_freed_memory()
    work, limit, found = _work(name), passes.FORWARD, {side: float("inf") for side in SIDES}
    for _ in range(rounds):
        for side in SIDES:
            passes.FORWARD = sys.maxsize if side == "before" else limit
            start = time.process_time()
            work()
            found[side] = min(found[side], time.process_time() - start)
    return found


def memory(name: str, side: str) -> dict[str, Any]:
    """Peak bytes of one side minus the memory of the process before, and the result."""
    torch.set_num_threads(1)
    work = _work(name)
    passes.FORWARD = sys.maxsize if side == "before" else passes.FORWARD
    before = resident()
    with measure(every=0.005) as cost:
        out = work()
    return {"bytes": cost.memory - before, "length": float(out.double().norm())}


def _work(name: str) -> Callable[[], Tensor]:
    spec, n = PASSES[name]
    gen, network = Generator().manual_seed(0), attar.network(spec, SHAPE, CLASSES)
    if name.startswith("dm"):
        return _dm(network, n, gen)
    data = Data(torch.randn(n, *SHAPE, generator=gen), torch.arange(n) % CLASSES)
    theta = torch.stack([network.init(gen) for _ in range(2)])
    if name.startswith("View"):
        return lambda: View(data, network, Training(), gen, theta=theta[0]).features
    return lambda: Draws(network, theta, data.spec).predict(data.x)


def _dm(network: Network, batch: int, gen: Generator) -> Callable[[], Tensor]:
    real = Data(torch.randn(batch * CLASSES, *SHAPE, generator=gen), torch.arange(batch * CLASSES) % CLASSES)
    syn = real[: 10 * CLASSES]
    method, task = DM(batch=batch), Task(real, network, CLASSES)

    def step() -> Tensor:
        x = syn.x.clone().requires_grad_()
        again = Generator().manual_seed(1)
        loss = method.loss(syn.map(lambda _: x), method.init(task, again), task, again).value
        return torch.autograd.grad(loss, x)[0]

    return step


def _passes(name: str, rounds: int) -> dict[str, Any]:
    timed = {
        way: _child(f"seconds({name!r}, {rounds}, {keep})") for way, keep in (("given back", False), ("kept", True))
    }
    peaks = {side: _child(f"memory({name!r}, {side!r})") for side in SIDES}
    return {
        "times_faster": {way: found["before"] / found["after"] for way, found in timed.items()},
        "times_less_memory": peaks["before"]["bytes"] / peaks["after"]["bytes"],
        "relative_gap": abs(peaks["before"]["length"] / peaks["after"]["length"] - 1),
        "seconds": timed,
        "bytes": {side: peaks[side]["bytes"] for side in SIDES},
    }


def _facility(rounds: int) -> dict[str, Any]:
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side in SIDES:
            runs[side].append(_child(f"facility({side!r})"))
    best = {side: min(run["seconds"] for run in runs[side]) for side in SIDES}
    picks = [run["picks"] for side in SIDES for run in runs[side]]
    return {
        "times_faster": best["before"] / best["after"],
        "same_picks": all(found == picks[0] for found in picks),
        "seconds": best,
        "bytes": {side: min(run["bytes"] for run in runs[side]) for side in SIDES},
    }


def facility(side: str) -> dict[str, Any]:
    """Processor seconds and peak bytes of facility location on gradients."""
    torch.set_num_threads(1)
    gen, y = Generator().manual_seed(0), torch.arange(POINTS) % CLASSES
    features = torch.randn(POINTS, FEATURES, generator=gen).relu()
    residuals = torch.randn(POINTS, CLASSES, generator=gen).add(3 * torch.eye(CLASSES)[y]).softmax(1)
    metric = GradientDistance(Outer(residuals - torch.eye(CLASSES)[y], features))
    before = resident()
    with measure() as cost:
        picks = lazy(FacilityLocation(metric, OLD_TABLE if side == "before" else None), PICKS)
    return {"seconds": cost.cpu, "bytes": cost.memory - before, "picks": picks.indices.tolist()}


def _compare(work: str, rounds: int, at_once: int = 1) -> dict[str, Any]:
    """One function of this module in several separate processes at once; the fastest of each side counts."""
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side in SIDES:
            started = [_start(f"{work}({side!r})", torch_first=side == "before") for _ in range(at_once)]
            runs[side] += [_read(process) for process in started]
    best = {side: min(found, key=lambda run: run["seconds"]) for side, found in runs.items()}
    times = best["before"]["seconds"] / best["after"]["seconds"]
    all_seconds = {side: [run["seconds"] for run in found] for side, found in runs.items()}
    return {"times_faster": times, **best, "all_seconds": all_seconds}


def _child(call: str) -> dict[str, Any]:
    return _read(_start(call))


def _start(call: str, torch_first: bool = False) -> subprocess.Popen[str]:
    first = "import torch; " if torch_first else ""
    code = f"{first}import json; from benchmarks import review; print(json.dumps(review.{call}))"
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)


def _read(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate()
    if process.returncode:
        raise RuntimeError("a process of this benchmark failed; what it said stands above")
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found
