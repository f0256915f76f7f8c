"""Question: how much do distilled sets depend on the training that they were learnt for?

Thirty images of MNIST, three per class, by ``dd``, ``sldd`` and ``label-distillation``, for random LeNets. New networks
are trained on each set with its recommended training, for half and twice as many steps, in a shuffled order of
examples, and with Adam and SGD in their usual settings. The test set is used once per figure. Finished coresets are
kept in the work folder.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Generator

import attar
from attar.assess.metrics import mean_and_error
from attar.core.files import write_json
from attar.coreset import Coreset
from attar.data import Split
from attar.engine import keep_freed_memory
from attar.infer import Draws
from attar.nets.train import Training
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK

NAME, DATA, NETWORK, PER_CLASS, SEEDS, DRAWS = "flexibility", "mnist", "lenet-xavier-leakyrelu", 3, (0, 1, 2), 5
UNROLLED = {"batch": 256, "inits": 1, "epochs": 4, "step_size": 0.05}
METHODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "dd": (UNROLLED, {"steps": 400, "init": "real", "lr": 0.05, "scalar_lr": 0.02, "clip": 0.1}),
    "sldd": (UNROLLED, {"steps": 400, "init": "real", "lr": 0.05, "label_lr": 0.05, "scalar_lr": 0.02, "clip": 0.1}),
    "label-distillation": ({}, {"steps": 400}),
}
USUAL = Training(steps=300, batch=30, weight_decay=0.0, schedule="constant")
#: How networks are trained.
WAYS: dict[str, Callable[[Coreset, int], Draws]] = {
    "recommended training": lambda made, seed: attar.infer(made, draws=DRAWS, seed=seed),
    "half as many steps": lambda made, seed: attar.infer(longer(made, 0.5), draws=DRAWS, seed=seed),
    "twice as many steps": lambda made, seed: attar.infer(longer(made, 2.0), draws=DRAWS, seed=seed),
    "examples in another order": lambda made, seed: attar.infer(shuffled(made, seed), draws=DRAWS, seed=seed),
    "Adam, 300 steps": lambda made, seed: usual(made, replace(USUAL, optimiser="adam", lr=1e-3), seed),
    "SGD, 300 steps": lambda made, seed: usual(made, replace(USUAL, optimiser="sgd", lr=0.01), seed),
}


def main() -> list[Path]:
    """Learn, train in every way, and write one JSON file."""
    keep_freed_memory()
    torch.set_num_threads(1)
    split = attar.load(DATA)
    rows = {method: measured(split, method) for method in METHODS}
    path = RESULTS / NAME / f"{NAME}.json"
    setting = {"data": DATA, "network": NETWORK, "per_class": PER_CLASS, "seeds": SEEDS, "draws": DRAWS}
    write_json(
        path,
        {
            "command": f"python -m benchmarks {NAME}",
            "setting": {**setting, "methods": METHODS},
            "rows": rows,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]


def measured(split: Split, method: str) -> dict[str, Any]:
    """Test accuracy of single networks by the way of training: over seeds, the mean of several networks each."""
    coresets = [learnt(split, method, seed) for seed in SEEDS]
    found: dict[str, Any] = {}
    for way, train in WAYS.items():
        each = [alone(train(made, seed), split) for made, seed in zip(coresets, SEEDS, strict=True)]
        centre, error = mean_and_error(each)
        found[way] = {"mean": centre, "error": error, "by_seed": each}
        sys.stderr.write(f"{method}, {way}: {centre:.3f}\n")
    return {"accuracy": found, "cpu": [made.recipe.cost.cpu for made in coresets]}


def learnt(split: Split, method: str, seed: int) -> Coreset:
    """The coreset of one seed, made only once."""
    path, (options, descent) = WORK / NAME / f"{method}-{seed}.safetensors", METHODS[method]
    if not path.exists():
        attar.reduce(
            split, method, per_class=PER_CLASS, seed=seed, network=NETWORK, options=options, descent=descent
        ).save(path)
    return Coreset.load(path)


def alone(posterior: Draws, split: Split) -> float:
    """The mean accuracy of single networks, not of their average prediction."""
    parts = [replace(posterior, theta=theta[None]) for theta in posterior.theta]
    return sum(attar.evaluate(part, split.test).accuracy for part in parts) / len(parts)


def longer(made: Coreset, times: float) -> Coreset:
    """The same coreset, with another number of recommended steps; learnt rates are cut off or repeated."""
    recipe = made.recipe
    if rates := recipe.sampler_options.get("rates"):
        count = max(1, round(times * len(rates)))
        options = {**recipe.sampler_options, "rates": [rates[k % len(rates)] for k in range(count)]}
        return replace(made, recipe=replace(recipe, sampler_options=options))
    steps = max(1, round(times * recipe.training.steps))
    return replace(made, recipe=replace(recipe, training=replace(recipe.training, steps=steps)))


def shuffled(made: Coreset, seed: int) -> Coreset:
    """The same examples in a random order."""
    order = torch.randperm(len(made.data), generator=Generator().manual_seed(seed))
    return replace(made, data=made.data[order])


def usual(made: Coreset, training: Training, seed: int) -> Draws:
    """Training on the examples and labels as on any others."""
    return attar.infer(made, "ensemble", draws=DRAWS, seed=seed, training=training)
