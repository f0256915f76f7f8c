"""Claims: the memory of a bpc-cd step does not grow with k, and it takes far less memory and time than if the graph is
kept; a step of vbpc costs little more than the forward and backward passes that it needs.

Memory is the peak of a process during one step, minus its memory before; time is CPU time of one thread, in
rounds that alternate between the two sides.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import attar
from attar.bayes.cd import contrast
from attar.bayes.energy import EnergyPotential
from attar.bayes.negative import langevin
from attar.bayes.vbpc import VBPC
from attar.condense.contract import Task
from attar.condense.source import Pixels
from attar.core.cost import available, measure, resident
from attar.core.files import write_json
from attar.data import Data
from attar.data.augment import DSA, draw
from attar.engine import keep_freed_memory
from attar.nets import Network
from attar.nets.objective import Objective
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK

NETWORK, IMAGES, K, ROUNDS, REAL = "convnet-d3w32", 100, 100, 5, 256
GRAPH_BYTES = 100e6  #: memory of the graph per step, at most; all k are kept only if memory allows


def main() -> list[Path]:
    """Measure both claims; write one JSON file."""
    ks = {k: _child("free", k) for k in (10, 200)}
    kept_k = K if available() > 1.2 * K * GRAPH_BYTES else K // 4
    kept, free = _child("kept", kept_k), _child("free", kept_k)
    found = {
        "command": "python -m benchmarks pseudo_coreset_step",
        "setting": {"network": NETWORK, "images": IMAGES, "k": kept_k, "real_batch": REAL, "rounds": ROUNDS},
        "memory_by_k": {str(k): run["memory"] for k, run in ks.items()},
        "memory_200_over_10": ks[200]["peak"] / ks[10]["peak"],
        "graph_kept": kept,
        "graph_free": free,
        "memory_ratio": kept["memory"] / free["memory"],
        "cpu_ratio": kept["cpu"] / free["cpu"],
        "vbpc": _child("vbpc", 0),
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / "pseudo_coreset_step" / "pseudo_coreset_step.json"
    write_json(path, found)
    return [path]


def child(kind: str, k: int) -> None:
    """The measurement of a separate process, printed as JSON."""
    torch.set_num_threads(1)
    keep_freed_memory()
    gen = torch.Generator().manual_seed(0)
    net = attar.network(NETWORK, (1, 28, 28), 10)
    syn = Data(torch.randn(IMAGES, 1, 28, 28, generator=gen).requires_grad_(), torch.arange(IMAGES) % 10)
    plus = net.init(gen)[None]
    if kind == "vbpc":
        sys.stdout.write(json.dumps(_vbpc(net, syn, gen)))
        return
    step = _free if kind == "free" else _kept
    before = resident()
    step(net, syn, plus, 1, gen).backward()
    with measure(every=0.005) as cost:
        step(net, syn, plus, k, gen).backward()
    found = {"k": k, "cpu": cost.cpu, "wall": cost.wall, "peak": cost.memory, "memory": cost.memory - before}
    sys.stdout.write(json.dumps(found))


def _free(net: Network, syn: Data, plus: Tensor, k: int, gen: torch.Generator) -> Tensor:
    """The step of the library."""
    energy = Objective(net)
    minus = langevin(EnergyPotential(energy, syn, DSA), plus, k, 0.01, 0.0, gen)
    return contrast(energy, syn.map(draw(DSA, gen)), plus, minus)[0]


def _kept(net: Network, syn: Data, plus: Tensor, k: int, gen: torch.Generator) -> Tensor:
    """The same step as in published code: the graph of all k steps is kept, although its gradient is stopped."""
    theta = plus[0].clone().requires_grad_()
    for _ in range(k):
        value = cross_entropy(net(theta, draw(DSA, gen)(syn.x)), syn.y)
        theta = theta - 0.01 * torch.autograd.grad(value, theta, create_graph=True)[0]
    x = draw(DSA, gen)(syn.x)
    return cross_entropy(net(plus[0], x), syn.y) - cross_entropy(net(theta.detach(), x), syn.y) + 0 * theta.sum()


def _vbpc(net: Network, syn: Data, gen: torch.Generator) -> dict[str, Any]:
    """CPU time of a step, and of the passes that it needs: one of the real batch, two both ways of the examples."""
    real = Data(torch.randn(4 * REAL, 1, 28, 28, generator=gen), torch.arange(4 * REAL) % 10)
    task, source = Task(real, net, 10), Pixels(syn.map(Tensor.detach), labels="targets", scalars={"scale": 10.0})
    method = VBPC(batch=REAL)
    state, theta = method.init(task, gen), net.init(gen)

    def step() -> None:
        method.loss(source(), state, task, gen).value.backward()

    def parts() -> None:
        with torch.no_grad():
            net.features(theta, real.x[:REAL])
        for leaf in (syn.x, theta.clone().requires_grad_()):
            at = theta if leaf is syn.x else leaf
            torch.autograd.grad(cross_entropy(net(at, syn.x if leaf is syn.x else syn.x.detach()), syn.y), leaf)

    times = _alternate(step, parts)
    return {**times, "ratio": times["step"] / times["parts"]}


def _alternate(step: Callable[[], None], parts: Callable[[], None]) -> dict[str, float]:
    sides: dict[str, list[float]] = {"step": [], "parts": []}
    for number in range(ROUNDS + 1):
        for name, work in (("step", step), ("parts", parts)):
            begin = time.process_time()
            for _ in range(5):
                work()
            if number:  # the first round warms up
                sides[name].append((time.process_time() - begin) / 5)
    return {name: median(values) for name, values in sides.items()}


def _child(kind: str, k: int) -> dict[str, Any]:
    code = f"from benchmarks.pseudo_coreset_step import child; child({kind!r}, {k})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=WORK.parents[1])
    found: dict[str, Any] = json.loads(done.stdout)
    return found
