"""The grid that conformance tests run over: every registered method, on feature vectors and on images."""

import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from torch import Tensor

import attar
from attar import Coreset, Data, Training
from attar.core import registry
from attar.data import Split
from attar.experts import Schedule, Trajectories, experts
from attar.infer import Draws
from attar.infer.diagnose import MixingWarning
from attar.plan import needs_of
from attar.select.view import View
from tests.known import gaussians, generator, images

SELECTORS = sorted(attar.methods("select"))
CONDENSERS = sorted(attar.methods("condense", "bayes"))
REDUCERS = SELECTORS + CONDENSERS
SAMPLERS = sorted(attar.methods("infer"))

SETS = {"features": gaussians(16), "images": images(16)}
HELD = {"features": gaussians(8, seed=1), "images": images(8, seed=1)}
SPLITS = {kind: Split(data, HELD[kind], HELD[kind]) for kind, data in SETS.items()}
NETWORKS = {"features": "mlp-d1w8", "images": "convnet-d1w4"}
BUDGET = Training(steps=20, batch=16)
STEPS, PER_CLASS = 5, 2

of_reducers = pytest.mark.parametrize("name", REDUCERS)
of_selectors = pytest.mark.parametrize("name", SELECTORS)
of_nested = pytest.mark.parametrize("name", [name for name in SELECTORS if registry.build(name, {}).nested])
of_condensers = pytest.mark.parametrize("name", CONDENSERS)
of_samplers = pytest.mark.parametrize("name", SAMPLERS)
of_kinds = pytest.mark.parametrize("kind", SETS)
of_all = pytest.mark.parametrize("name", [*REDUCERS, *SAMPLERS])


def options(name: str, kind: str) -> dict[str, Any]:
    """Small batches and short chains, and no augmentation where there are no images."""
    small = {
        "batch": 8,
        "warmup": 10,
        "thin": 3,
        "step": 0.02,
        "leaps": 5,
        "networks": 1,
        "k": 5,
        "net_steps": 4,
        "inits": 1,
        "draws": 3,
        "model_steps": 10,
        "tries": 2,
        "steps": 3,
        **({"strategy": "none"} if kind == "features" else {}),
    }
    known = registry.fields(registry.find(name).build)
    return {key: value for key, value in small.items() if key in known}


def reduce(name: str, kind: str, seed: int = 0, **more: Any) -> Coreset:
    learns = name in CONDENSERS
    return attar.reduce(
        SPLITS[kind],
        name,
        per_class=PER_CLASS,
        seed=seed,
        network=NETWORKS[kind],
        options=options(name, kind),
        descent={"steps": STEPS} if learns else None,
        training=BUDGET,
        experts=trained(kind) if needs_of(name).experts else None,
        **more,
    )


@cache
def trained(kind: str) -> Trajectories:
    """Two short trajectories, in a folder that lasts as long as the tests."""
    folder = Path(_FOLDER.name) / kind
    return experts(SETS[kind], NETWORKS[kind], Schedule(2, 3, replace(BUDGET, lr=0.01)), folder=folder)


_FOLDER = TemporaryDirectory()


def infer(name: str, kind: str, seed: int = 0, draws: int = 3) -> Draws:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixingWarning)  # chains are short
        posterior = attar.infer(
            SETS[kind],
            name,
            draws=draws,
            seed=seed,
            network=NETWORKS[kind],
            training=replace(BUDGET, batch=64),  # all examples at once, as exact samplers need
            options=options(name, kind),
        )
    assert isinstance(posterior, Draws)
    return posterior


reduced, inferred = cache(reduce), cache(infer)


def view(kind: str, chunk: int = 1024) -> View:
    data = SETS[kind]
    net = attar.network(NETWORKS[kind], data.shape, data.classes)
    return View(data, net, BUDGET, generator(7), chunk, validation=HELD[kind])


def equal(a: Data, b: Data) -> bool:
    def same(u: Tensor | None, v: Tensor | None) -> bool:
        return u is v if u is None or v is None else torch.equal(u, v)

    return same(a.x, b.x) and same(a.y, b.y) and same(a.weights, b.weights)
