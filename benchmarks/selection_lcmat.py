"""Claim: LCMat-S picks 1 % of 60,000 Fashion-MNIST images in under a minute and 2 GB, given the scoring network.

Its authors report 627 s at 1 % and 1,400 s at 10 % for 50,000 CIFAR-10 images on a GPU, including 10 epochs of
training. Here the network is trained before the measurement; the forward pass of all images is reported separately.
Every fraction runs in its own process with two threads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import attar
from attar.core.cost import measure
from attar.core.errors import AttarError
from attar.core.files import write_json
from attar.data import Data
from attar.nets import default, network
from attar.nets.train import Training
from attar.select.balance import PerClass
from attar.select.lcmats import LCMatS
from attar.select.view import View
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK
from benchmarks.selection import alone

FRACTIONS, STEPS, THREADS = (0.001, 0.01, 0.1), 300, 2


def main(fractions: tuple[float, ...] = FRACTIONS, examples: int = 60_000, steps: int = STEPS) -> list[Path]:
    """Measure and write one JSON file."""
    cache = WORK / "selection_lcmat"
    alone(_train, cache, examples, steps)
    runs = {str(fraction): alone(_select, cache, examples, steps, fraction) for fraction in fractions}
    path = RESULTS / "selection" / "lcmat.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks selection_lcmat",
            "setting": {
                "data": "fashion-mnist",
                "examples": examples,
                "network": default(_data(1).spec),
                "steps": steps,
                "threads": THREADS,
            },
            "fractions": runs,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def _train(cache: Path, examples: int, steps: int) -> None:
    """Train the scoring network and save it in the view's cache."""
    _ = _view(cache, examples, steps).features


def _select(cache: Path, examples: int, steps: int, fraction: float) -> dict[str, Any]:
    kept = _view(cache, examples, steps)
    view = View(kept.data, kept.network, kept.training, kept.gen, theta=kept.theta)  # with nothing computed yet
    del kept
    with measure() as passing:
        _ = view.logits
    with measure() as selecting:
        picked = PerClass(LCMatS()).select(view, round(fraction * examples / 10), torch.Generator())
    return {
        "picks": len(picked.indices),
        "forward_pass": {"wall": passing.wall, "cpu": passing.cpu, "peak_bytes": passing.memory},
        "selection": {"wall": selecting.wall, "cpu": selecting.cpu, "peak_bytes": selecting.memory},
    }


def _view(cache: Path, examples: int, steps: int) -> View:
    torch.set_num_threads(THREADS)
    data = _data(examples)
    net = network(default(data.spec), data.spec)
    return View(data, net, Training(steps=steps), torch.Generator().manual_seed(0), cache=cache)


def _data(examples: int) -> Data:
    try:
        split = attar.load("fashion-mnist", download=False)
    except AttarError as error:
        raise AttarError(f"The benchmark of LCMat-S needs Fashion-MNIST: {error}") from error
    x, y = torch.cat([split.train.x, split.val.x]), torch.cat([split.train.y, split.val.y])
    return Data(x[:examples], y[:examples], spec=split.spec)
