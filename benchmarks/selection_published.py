"""Claim: how its published code looks at examples is part of why LCMat-S does better in its paper than here.

That code computes gradients and curvature with the network still in training mode, class by class, so batch norm sees
batches of one class and takes away what they have in common; and it takes the mean over a batch, so the examples of a
class's last batch count more (on CIFAR-10, 8 of 5,000 in batches of 128 count 16 times). Both are put in here one by
one, with the last batches that classes have here. As a check that it is not batch norm itself, the same network also
looks at mixed batches.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from attar.engine import keep_freed_memory, run_all
from attar.evaluate.study import machine, mean_and_error, versions
from attar.files import write_json
from attar.select.balance import PerClass
from attar.select.contract import Selection, Selector
from attar.select.lcmats import LCMatS
from attar.select.outer import Outer
from attar.select.uniform import Uniform
from attar.select.view import Part, View
from benchmarks import RESULTS
from benchmarks._selecting import Bench, Setting

PER_CLASS, SEEDS, BATCH, WORKERS = (5, 50), tuple(range(3)), 128, 2
PLAIN = Setting()
NORMED = Setting(network=f"{PLAIN.network}-batch")


class OneClass(View):
    """Examples as a network with batch norm sees them in batches of one class."""

    @cached_property
    def features(self) -> Tensor:
        found = torch.empty(len(self), self.network.head(self.theta)[0].shape[1])
        for c in range(self.data.classes):
            for places in (self.data.hard == c).nonzero().flatten().split(BATCH):
                with torch.no_grad():
                    found[places] = self.network.features(self.theta, self.data.x[places]).flatten(1)
        return found


class Counted(Part):
    """A class whose last examples count more, as if their mean had been taken over a smaller batch."""

    def slopes(self, fitted: bool) -> Outer:
        return self._counted(super().slopes(fitted))

    @cached_property
    def curvatures(self) -> Outer:
        return self._counted(super().curvatures)

    def _counted(self, vectors: Outer) -> Outer:
        times = torch.ones(len(self))
        if last := len(self) % BATCH:
            times[-last:] = BATCH / last
        return replace(vectors, left=vectors.left * times[:, None])


class Inflated(LCMatS):
    """LCMat-S by gradients and curvature of which the last are inflated."""

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        assert isinstance(view, Part)
        return super().select(Counted(view.of, view.indices, view.label), size, gen)


def main(setting: Setting = PLAIN, normed: Setting = NORMED, results: Path = RESULTS) -> list[Path]:
    """Measure and write one JSON file."""
    keep_freed_memory()
    runs = [run for _, found in run_all(_seed, (setting, normed), SEEDS, workers=WORKERS) for run in found]
    path = results / "selection" / "published.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks selection_published",
            "setting": setting.plain() | {"seeds": SEEDS, "batch": BATCH, "batch_norm": normed.network},
            "table": {str(size): {row: _means(runs, row, size) for row in rows()} for size in PER_CLASS},
            "runs": runs,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def rows() -> dict[str, tuple[Selector, str]]:
    """A method, and what it looks through."""
    return {
        "uniform": (Uniform(), "plain"),
        "lcmat-s": (LCMatS(), "plain"),
        "lcmat-s, batch norm": (LCMatS(), "mixed"),
        "lcmat-s, batch norm over one class": (LCMatS(), "one class"),
        "lcmat-s, last batch inflated": (Inflated(), "plain"),
        "lcmat-s, both": (Inflated(), "one class"),
    }


def _seed(settings: tuple[Setting, Setting], seed: int) -> list[dict[str, Any]]:
    bench, normed = (Bench(setting, [1.0]) for setting in settings)
    views = {"plain": bench.view(seed), "mixed": normed.view(seed)}
    mixed = views["mixed"]
    views["one class"] = OneClass(mixed.data, mixed.network, mixed.training, mixed.gen, theta=mixed.theta)
    runs = []
    for (row, (method, seen)), size in product(rows().items(), PER_CLASS):
        picked = PerClass(method).select(views[seen], size, Generator().manual_seed(seed)).indices
        losses = views["plain"].losses
        runs.append(
            {
                "row": row,
                "per_class": size,
                "seed": seed,
                "right": float((views[seen].logits.argmax(1) == bench.train.hard).float().mean()),
                "hardness": float(losses[picked].mean() / losses.mean()),
                **bench.learnt(bench.train[picked], seed),
            }
        )
    return runs


def _means(runs: list[dict[str, Any]], row: str, size: int) -> dict[str, Any]:
    own = [run for run in runs if run["row"] == row and run["per_class"] == size]
    figures = {
        name: mean_and_error([run[name] for run in own]) for name in ("accuracy", "validation", "hardness", "right")
    }
    return {name: {"mean": centre, "error": error} for name, (centre, error) in figures.items()}
