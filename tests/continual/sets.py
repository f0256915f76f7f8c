"""Small sets of stages."""

from __future__ import annotations

from typing import Any

from attar.continual import ContinualSpec
from attar.data import Split
from attar.nets.train import Training
from tests.known import gaussians


def split(classes: int = 4, seed: int = 0) -> Split:
    data = gaussians(12, classes=classes, seed=seed)
    return Split(data[: 6 * classes], data[6 * classes : 9 * classes], data[9 * classes :])


def spec(**changes: Any) -> ContinualSpec:
    usual = {"methods": (), "stages": 2, "per_class": 2, "seeds": (0,), "network": "mlp-d1w8"}
    return ContinualSpec.of({**usual, "training": Training(steps=40, batch=32), **changes})
