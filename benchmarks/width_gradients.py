"""Claim: gradients of synthetic images shrink with the width of the network, about as a power of it.

The norm of the first gradient of ``dm``, ``dc``, ``dsa`` and ``cafe`` with respect to one image per class of
Fashion-MNIST, relative to that at width 128, to which the published learning rates belong.
"""

from __future__ import annotations

from math import log
from pathlib import Path
from statistics import geometric_mean

import torch

import attar
from attar.condense.contract import Condenser, Task
from attar.condense.source import Pixels
from attar.core import registry
from attar.core.files import write_json
from attar.data import Data
from attar.study.results import machine, versions
from benchmarks import RESULTS

METHODS, WIDTHS, NETWORKS, BATCH, EXAMPLES = ("dm", "dc", "dsa", "cafe"), (16, 32, 64, 128), 3, 32, 5_000


def main(widths: tuple[int, ...] = WIDTHS, networks: int = NETWORKS) -> list[Path]:
    """Measure and write one JSON file."""
    torch.set_num_threads(1)
    train = attar.load("fashion-mnist").train[:EXAMPLES]
    norms = {name: [_norm(name, train, width, networks) for width in widths] for name in METHODS}
    path = RESULTS / "width_gradients" / "width_gradients.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks width_gradients",
            "setting": {"data": "fashion-mnist", "network": "convnet-d3", "networks": networks, "batch": BATCH},
            "widths": list(widths),
            "norms": norms,
            "power": {name: _power(widths, found) for name, found in norms.items()},
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _norm(name: str, train: Data, width: int, networks: int) -> float:
    """The norm of the first gradient of the images: the geometric mean over networks."""
    method: Condenser = registry.build(name, {"batch": BATCH})
    net = attar.network(f"convnet-d3w{width}", train.shape, train.classes)
    task, found = Task(train, net, train.classes), []
    for seed in range(networks):
        gen = torch.Generator().manual_seed(seed)
        source = Pixels(train.sample_per_class(1, gen))
        method.loss(source(), method.init(task, gen), task, gen).value.backward()
        assert source.x.grad is not None
        found.append(float(source.x.grad.norm()))
    return geometric_mean(found)


def _power(widths: tuple[int, ...], norms: list[float]) -> float:
    """The slope of the line through log norms over log widths, by least squares."""
    x, y = [log(width) for width in widths], [log(norm) for norm in norms]
    middle, level = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - middle) * (b - level) for a, b in zip(x, y, strict=True))
    return above / sum((a - middle) ** 2 for a in x)
