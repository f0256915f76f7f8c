"""Claim: forecasts of time and memory are within a factor of two of nearly all runs; and how both grow.

Every method is forecast and then run on 10,000 images of Fashion-MNIST, both in a process of their own with one thread,
and some selections of embeddings and from a table in a file too. The time of a run is the lesser of wall clock and
processor time, as in forecasts. One method of each family is then run with half and twice as many examples, pixels,
classes, examples per class and steps, and the exponents of time and peak memory are fitted to all of its runs together.
Steps are few, so that a run takes seconds; time is proportional to them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

import attar
from attar.core import registry
from attar.core.cost import Cost, measure
from attar.core.files import read_json, write_json
from attar.data import Data, InParts, Split
from attar.experts.schedule import Schedule
from attar.nets.train import Training
from attar.plan import Plan, needs_of, plan
from attar.reduce import run
from attar.select import large
from attar.select.forecast import seconds as selecting
from attar.select.mapreduce import MapReduce
from attar.select.sources import from_embeddings
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK, tell_kept

NETWORK = "convnet-d2w16"
STEPS = {
    "dm": 20,
    "kip": 20,
    "vbpc": 20,
    "frepo": 20,
    "label-distillation": 20,
    "bpc-rkl": 5,
    "bpc-cd": 2,
    "cafe": 3,
    "mtt": 3,
    "sldd": 3,
    "dd": 3,
    "gtn": 3,
}
ONCE = ("average-real", "k-means-centres", "label-solve")  #: condensers with one step of their own
EMBEDDED: dict[str, dict[str, Any]] = {"k-center": {}, "entropy": {}, "craig": {"part": 2048}}
TABLES: dict[str, dict[str, Any]] = {"uniform": {}, "k-center": {}, "entropy": {}, "craig": {"part": 1024}}
ROWS, COLUMNS, PICKS = 100_000, 64, 100  #: of embeddings in memory
STORED = 300_000  #: rows of a table in a file


@dataclass(frozen=True)
class Problem:
    """What a method is run on."""

    examples: int = 4000
    side: int = 20  #: of an image, in pixels
    classes: int = 5
    per_class: int = 10
    steps: float = 1.0  #: as a multiple of the usual ones


LARGE = Problem(10_000, 20, 10)
VARIED: Mapping[str, tuple[float, float]] = {
    "examples": (2000, 8000),
    "side": (14, 28),
    "classes": (2, 10),
    "per_class": (5, 20),
    "steps": (0.5, 2.0),
}
POINTS = [
    Problem(),
    *(replace(Problem(), **{k: type(getattr(Problem(), k))(v)}) for k, vs in VARIED.items() for v in vs),
]
FAMILIES = {
    "uniform": "selection without a network",
    "k-means": "clusters of the examples",
    "herding": "selection by features",
    "k-center": "selection by features",
    "el2n": "selection by several trainings",
    "craig": "facility location",
    "lcmat-s": "facility location",
    "dm": "matching features",
    "cafe": "matching features of all layers",
    "dc": "matching gradients",
    "dsa": "matching gradients",
    "lcmat-c": "matching gradients and variance",
    "mtt": "matching experts",
    "bpc-cd": "matching experts",
    "bpc-fkl": "matching experts",
    "bpc-w": "matching experts",
    "bpc-rkl": "pseudo-coreset without experts",
    "kip": "kernel regression",
    "vbpc": "closed form of the last layer",
    "frepo": "closed form of the last layer",
    "dd": "unrolled training",
    "sldd": "unrolled training",
    "label-solve": "labels in closed form",
}


def main(methods: Sequence[str] | None = None) -> list[Path]:
    """Measure what has not been measured yet, and write one JSON file after every measurement.

    Args:
        methods: The methods; by default all but tdd, which is for texts and whose loop is that of sldd.
    """
    work, ran = WORK / "forecasts", list[bool]()
    every = [*FAMILIES, *(name for name in registry.methods(*registry.REDUCERS) if name not in (*FAMILIES, "tdd"))]
    _full()  # in memory once, for all processes
    makers = {f"embeddings-{name}": partial(_embedded, name, options) for name, options in EMBEDDED.items()}
    makers |= {f"table-{name}": partial(_tabled, name, options) for name, options in TABLES.items()}
    chosen = every if methods is None else methods
    makers |= {f"large-{name}": partial(_forecast, name, LARGE) for name in chosen}
    makers |= {f"growth-{name}": partial(_growth, name) for name in chosen if name in FAMILIES}
    for name, make in makers.items():
        path = work / f"{name}.json"
        ran.append(not path.exists())
        if ran[-1]:
            with ProcessPoolExecutor(1, mp_context=get_context("fork")) as alone:  # imports and data are shared
                write_json(path, alone.submit(make).result())
            sys.stderr.write(f"{name}\n")
        _publish(work)
    if not any(ran):
        tell_kept(work)
    return [_publish(work)]


def _publish(work: Path) -> Path:
    """Write all that is measured."""
    found = {path.stem: read_json(path) for path in sorted(work.glob("*.json"))}

    def of(kind: str) -> dict[str, Any]:
        return {name.removeprefix(kind): result for name, result in found.items() if name.startswith(kind)}

    grown = {name: result["runs"] for name, result in of("growth-").items()}
    path = RESULTS / "forecasts" / "forecasts.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks forecasts",
            "setting": {
                "data": "fashion-mnist",
                "network": NETWORK,
                "large": asdict(LARGE),
                "base": asdict(Problem()),
                "of_embeddings": {"rows": ROWS, "columns": COLUMNS, "picks": PICKS},
                "of_tables": {"rows": STORED, "columns": COLUMNS, "picks": PICKS},
                "threads": 1,
            },
            "forecasts": of("large-"),
            "of_embeddings": of("embeddings-"),
            "of_tables": of("table-"),
            "families": FAMILIES,
            "runs": grown,
            "fits": {name: fitted(runs) for name, runs in grown.items()},
            "versions": versions(),
            "machine": machine(),
        },
    )
    return path


def fitted(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Exponents of time and memory in every quantity, by least squares in logarithms, and the largest factor off."""
    names = list(VARIED)
    x = np.array([[1.0, *(np.log(run["problem"][name]) for name in names)] for run in runs])
    x[:, 1 + names.index("side")] *= 2  # numbers of an image
    found: dict[str, Any] = {}
    for what in ("seconds", "bytes"):
        y = np.log([max(run[what], 1e-6) for run in runs])
        answer, *_ = np.linalg.lstsq(x, y, rcond=None)
        exponents = dict(zip(names, answer[1:].tolist(), strict=True))
        found[what] = {"exponents": exponents, "off": float(np.exp(np.abs(x @ answer - y).max()))}
    return found


def _plan(method: str, problem: Problem) -> Plan:
    """The reduction; experts, if it needs them, are one network that is trained for one epoch."""
    split = _images(problem)
    selects = method in registry.methods("select")
    steps = None if selects or method in ONCE else {"steps": max(1, round(problem.steps * STEPS.get(method, 4)))}
    known: dict[str, Any] = {
        "network": NETWORK,
        "training": Training(steps=round(50 * problem.steps)),
        "descent": steps,
    }
    if needs_of(method).experts:
        known["experts"] = attar.experts(
            split, NETWORK, Schedule(trajectories=1), folder=WORK / "forecasts" / f"experts-{split.train.fingerprint}"
        )
    return plan(split, method, per_class=problem.per_class, **known)


def _images(problem: Problem) -> Split:
    """Some images of some classes, in another size."""
    full = _full()

    def some(data: Data, count: int) -> Data:
        places = (data.hard < problem.classes).nonzero().flatten()[:count]
        x: Tensor = interpolate(data.x[places], (problem.side, problem.side), mode="area")
        return Data(x, data.hard[places])

    return Split(some(full.train, problem.examples), some(full.val, problem.examples // 10), some(full.test, 10))


@cache
def _full() -> Split:
    return attar.load("fashion-mnist", download=False)


def _forecast(method: str, problem: Problem) -> dict[str, Any]:
    """What is forecast, what the run took, and what the forecast took; both in a new process, like two commands."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as alone:
        forecast = alone.submit(_rehearsed, method, problem).result()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    decided = _plan(method, problem)
    with measure() as before:  # returns what is free to the system
        pass
    cost = run(decided).recipe.cost
    return forecast | {"seconds": _least(cost), "bytes": cost.memory - before.memory + decided.data.x.nbytes}


def _rehearsed(method: str, problem: Problem) -> dict[str, Any]:
    """What is forecast, and what that took."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    decided = _plan(method, problem)
    with measure() as rehearsed:
        seconds = decided.seconds()
    return {"forecast": seconds, "rehearsal": _least(rehearsed), "forecast_bytes": decided.memory()}


def _embedded(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a selection from embeddings, without class balance."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    gen = torch.Generator().manual_seed(0)
    x, y = torch.randn(ROWS, COLUMNS, generator=gen), torch.randint(10, (ROWS,), generator=gen)
    chosen, part = registry.build(method, {}, "select"), options.get("part")
    if part is not None:
        chosen = MapReduce(chosen, part)
    with measure() as rehearsed:
        seconds = selecting(from_embeddings(x, y), chosen, PICKS)
    with measure() as cost:
        attar.select(x, method, labels=y, size=PICKS, part=part)
    return {"forecast": seconds, "seconds": _least(cost), "rehearsal": _least(rehearsed)}


def _tabled(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a selection from a table in a file, read in parts by one process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    place, rng = WORK / "forecasts", np.random.default_rng(0)
    if not (place / "y.npy").exists():
        np.save(place / "x.npy", rng.standard_normal((STORED, COLUMNS), dtype=np.float32))
        np.save(place / "y.npy", rng.integers(0, 10, STORED))
    table, chosen = InParts(place / "x.npy", label=str(place / "y.npy")), registry.build(method, {}, "select")
    with measure() as first:  # labels are read
        decided = large.plan(table, chosen, size=PICKS, **options)
    with measure() as rehearsed:
        seconds = decided.seconds()
    with measure() as cost:
        _, most = large.run(decided)
    found = {"forecast": seconds, "seconds": _least(first) + _least(cost), "rehearsal": _least(rehearsed)}
    return found | {"forecast_bytes": decided.forecast, "bytes": max(cost.memory, most)}


def _growth(method: str) -> dict[str, Any]:
    """Time and peak memory of a method on every problem, beside what the process held before."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    run(_plan(method, replace(Problem(), examples=500)))  # the first run includes one-time set-up
    runs = []
    for problem in POINTS:
        decided = _plan(method, problem)
        with measure() as before:
            pass
        cost = run(decided).recipe.cost
        held = cost.memory - before.memory + decided.data.x.nbytes
        runs.append({"problem": asdict(problem), "seconds": _least(cost), "bytes": held})
    return {"runs": runs}


def _least(cost: Cost) -> float:
    return min(cost.wall, cost.cpu)
