"""Learnt examples are worth more than as many random ones: the purpose of the library, for every learnt method."""

from dataclasses import replace
from functools import cache
from math import hypot
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
import torch

import attar
from attar import Training
from attar.assess.metrics import mean_and_error
from attar.experts import Schedule, Trajectories
from attar.plan import needs_of
from tests.known import digits

SEEDS = range(5)
LEARNT = sorted(attar.methods("condense", "bayes"))
SMALL, WIDE, SHALLOW = "convnet-d2w16", "convnet-d2w32", "mlp-d1w32-xavier"
SCHEDULE = Schedule(4, 3, Training(batch=64, lr=0.01, momentum=0.9, weight_decay=0, schedule="constant"))
AHEAD: dict[str, Any] = {"net_steps": 10, "ahead": 2, "max_epoch": 1}  # of an expert's epochs


class Setting(NamedTuple):
    """A short run that shows what a method is for; chosen by validation scores, slow if it takes more than 10 s."""

    network: str
    steps: int | None = None  #: None for the method's own
    options: dict[str, Any] | None = None
    slow: bool = False
    per_class: int = 1

    @property
    def training(self) -> Training:
        return Training(steps=150 if self.slow else 60)


FIXED: dict[str, Any] = {"start": "fixed", "batch": 256, "step_size": 0.5}
SETTINGS = {
    "average-real": Setting(SMALL),
    "bpc-cd": Setting(SMALL, 60, {"k": 10, "min_epoch": 3, "max_epoch": 3}, slow=True),
    "bpc-fkl": Setting(SMALL, 60, {**AHEAD, "step_size": 0.05}, slow=True),
    # With the small convolutional network, 60 steps were above the subset by one standard error.
    "bpc-rkl": Setting("mlp-d1w32", 100, {"strategy": "none"}),
    "bpc-w": Setting(SMALL, 60, AHEAD, slow=True),
    "cafe": Setting(SMALL, 25, {"batch": 32}, slow=True),
    "dc": Setting(SMALL, 10, {"batch": 32}),
    "dd": Setting(SHALLOW, 150, FIXED, slow=True),
    "dm": Setting(SMALL, 15, {"batch": 32}),
    "dsa": Setting(SMALL, 10, {"batch": 32}),
    "frepo": Setting(WIDE, 100, {"batch": 64}, slow=True),
    "gtn": Setting(SHALLOW, 150, {"epochs": 5, "batch": 256, "step_size": 0.1}, slow=True),
    "k-means-centres": Setting(SMALL),
    "kip": Setting(WIDE, 50, {"batch": 256}),
    "label-solve": Setting(WIDE),
    "lcmat-c": Setting(SMALL, 25, {"batch": 32}, slow=True),
    # From a network trained for 20 steps: from one trained for 500, as by default, the objective is flat (z 0.5).
    "mnemonics": Setting("linear", 40, {"model_steps": 20, "step_size": 0.5, "batch": 256}),
    "mtt": Setting(SMALL, 60, {"net_steps": 10}, slow=True),
    "sldd": Setting(SHALLOW, 60, FIXED),
    "tdd": Setting(SHALLOW, 150, FIXED, slow=True),
    "vbpc": Setting(WIDE, 50, {"batch": 64}),
}
#: Methods that change no example: their labels are compared with the classes of the same examples, below.
LABELS = {"label-distillation": Setting("mlp-d1w32", 100, {"batch": 256, "alpha": 0.1, "net_lr": 0.01})}
_FOLDER = TemporaryDirectory()


@cache
def trained(network: str) -> Trajectories:
    """A few short trajectories, in a folder that lasts as long as the tests."""
    return attar.experts(digits(), network, SCHEDULE, folder=Path(_FOLDER.name) / network)


def accuracy(method: str, setting: Setting) -> tuple[float, float]:
    """Mean validation accuracy over seeds, and its standard error, of one network trained on the coreset."""
    found = []
    for seed in SEEDS:
        coreset = attar.reduce(
            digits(),
            method,
            per_class=setting.per_class,
            seed=seed,
            network=setting.network,
            options=setting.options,
            descent={"steps": setting.steps} if setting.steps else None,
            training=setting.training,
            experts=trained(setting.network) if needs_of(method).experts else None,
        )
        found.append(attar.evaluate(attar.infer(coreset, draws=1, seed=seed), digits().val).accuracy)
    return mean_and_error(found)


@cache
def uniform(network: str, per_class: int, slow: bool) -> tuple[float, float]:
    return accuracy("uniform", Setting(network, slow=slow, per_class=per_class))


def case(method: str) -> Any:
    marks = [pytest.mark.slow] if method in SETTINGS and SETTINGS[method].slow else []
    return pytest.param(method, marks=marks)


@pytest.mark.parametrize("method", [case(method) for method in LEARNT if method not in LABELS])
def test_a_learnt_coreset_beats_a_random_subset_by_more_than_chance(method: str) -> None:
    assert method in SETTINGS, f"add a setting for {method} to SETTINGS: one with which it beats a random subset"
    setting = SETTINGS[method]
    ours, our_error = accuracy(method, setting)
    random, random_error = uniform(setting.network, setting.per_class, setting.slow)
    assert ours - random > 2 * hypot(our_error, random_error)


@pytest.mark.parametrize("method", LABELS)
def test_learnt_labels_of_a_random_subset_beat_its_own_by_more_than_chance(method: str) -> None:
    """Under the same training, which the method prescribes, so that nothing but the labels can make the difference."""
    setting, gains = LABELS[method], []
    descent = {"steps": setting.steps, "init": "uniform", "lr": 0.1}
    for seed in SEEDS:
        given: dict[str, Any] = {"per_class": 1, "seed": seed, "network": setting.network, "training": setting.training}
        subset = attar.reduce(digits(), "uniform", **given)
        learnt = attar.reduce(digits(), method, options=setting.options, descent=descent, **given)
        assert torch.equal(learnt.data.x, subset.data.x)
        own, ours = (
            attar.evaluate(attar.infer(replace(learnt, data=data), draws=1, seed=seed), digits().val).accuracy
            for data in (subset.data, learnt.data)
        )
        gains.append(ours - own)
    gain, error = mean_and_error(gains)
    assert gain > 2 * error


def test_every_setting_is_of_a_learnt_method() -> None:
    assert SETTINGS.keys() | LABELS.keys() == set(LEARNT)
