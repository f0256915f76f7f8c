"""Claim: selection from a table on disk takes less than 2 GB at any size, and time that is linear in the rows.

Five million embeddings with 64 coordinates in ten classes lie in 64 Parquet files; smaller tables are the first of
them. Each run is a process of its own, with one worker. Ray repeats every run, and must pick the same rows. What parts
cost in quality is measured where the exact method fits into a few GB: the objective of the picks on all rows, relative
to that of the exact method's picks, with uniform picks beside it. Each seed has other rows of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attar.core import registry
from attar.core.cost import Cost, measure
from attar.core.errors import require
from attar.core.files import atomic, read_json, write_json
from attar.data import InParts
from attar.engine import Engine, Where
from attar.select import large
from attar.select.contract import Selection
from attar.select.lcmats import CurvedDistance
from attar.select.metrics import GradientDistance
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK, tell_kept
from benchmarks.selection import alone

ROWS = 78_125  #: of a file; five million in all
SIZE, CLASSES, CENTRES = 64, 10, 1000
SIZES = 4  #: of tables, at least, for a fit
FILES = (1, 4, 16, 64)  #: of the tables
#: Rows on which the exact method is compared, and the seeds of each.
SMALL, SEEDS = {"k-center": (78_125, 1_250_000), "craig": (16_000,), "lcmat-s": (16_000,)}, 3
METHODS: dict[str, dict[str, Any]] = {
    "uniform": {"size": 1000},
    "k-center": {"size": 100},
    "craig": {"size": 50, "part": 1024},
    "lcmat-s": {"size": 50, "part": 1024, "options": {"dimensions": 20}},
}
Runs = dict[str, dict[str, dict[str, Any]]]  #: by method and number of rows


def main(files: Sequence[int] = FILES, rows: int = ROWS, small: Mapping[str, Sequence[int]] = SMALL) -> list[Path]:
    """Measure what has not been measured yet, the smallest tables first, and write one JSON file after every run."""
    work = WORK / "select_large"
    folder = work / f"rows-{rows}"
    ran = list[bool]()

    def path(name: str) -> Path:
        return work / f"{rows}-{name}.json"

    def kept(name: str, make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        ran.append(not path(name).exists())
        if ran[-1]:
            write_json(path(name), make())
        found: dict[str, Any] = read_json(path(name))
        return found

    found: dict[Where, Runs] = {engine: {method: {} for method in METHODS} for engine in ("local", "ray")}
    quality: dict[str, dict[str, list[dict[str, Any]]]] = {method: {} for method in small}
    for method, size in ((method, size) for method, sizes in small.items() for size in sizes):
        quality[method][str(size)] = [
            kept(f"quality-{method}-{size}-{seed}", partial(alone, _quality, method, folder, rows, size, seed))
            for seed in range(SEEDS)
        ]
    for count, engine, method in product(files, found, METHODS):
        pattern = _table(folder, rows, count)
        run = kept(f"{engine}-{method}-{count}", partial(alone, _run, method, pattern, engine))
        if engine == "ray":
            run["same_picks"] = run["picks"] == found["local"][method][str(count * rows)]["picks"]
        found[engine][method][str(count * rows)] = run
        _publish(found["local"], found["ray"], quality)
    if not any(ran):
        tell_kept(work)
    return [_publish(found["local"], found["ray"], quality)]


def _publish(runs: Runs, ray: Runs, quality: Mapping[str, Any]) -> Path:
    """Write what is measured."""
    path = RESULTS / "selection" / "large.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks select_large",
            "setting": {"coordinates": SIZE, "classes": CLASSES, "methods": METHODS, "threads": 1, "workers": 1},
            "methods": {name: {n: _plain(run) for n, run in found.items()} for name, found in runs.items()},
            "fit": {name: _fit(found) for name, found in runs.items() if len(found) >= SIZES},
            "ray": {name: {n: _plain(run) for n, run in found.items()} for name, found in ray.items()},
            "quality": quality,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return path


def _plain(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run without its picks."""
    return {name: value for name, value in run.items() if name != "picks"}


def _fit(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Processor seconds as a + b n and as c n^e, by least squares over all sizes, relative to what was measured."""
    n, seconds = np.array([int(n) for n in runs], float), np.array([run["cpu"] for run in runs.values()])
    slope, fixed = np.polyfit(n, seconds, 1, w=1 / seconds)
    return {
        "fixed_seconds": float(fixed),
        "seconds_per_million_rows": float(1e6 * slope),
        "largest_error": float(np.abs((fixed + slope * n) / seconds - 1).max()),
        "exponent": float(np.polyfit(np.log(n), np.log(seconds), 1)[0]),
    }


def _run(method: str, pattern: str, engine: Where) -> dict[str, Any]:
    asked = dict(METHODS[method])
    chosen = registry.build(method, asked.pop("options", {}), "select")
    torch.set_num_threads(1)
    with measure() as cost:
        plan = large.plan(InParts(pattern, "emb", "y", "key"), chosen, memory="2GB", **asked)
        picked, most = large.run(plan, engine=Engine(engine))
    seconds = plan.seconds()
    return {
        "picks": picked.rows,
        "wall": cost.wall,
        "cpu": cost.cpu,
        "peak_bytes": max(cost.memory, most),
        "forecast_bytes": plan.forecast,
        "forecast_seconds": seconds,
        "parts": plan.parts,
    }


def _quality(method: str, folder: Path, each: int, rows: int, seed: int) -> dict[str, Any]:
    """The objective of the picks of parts, and of uniform ones, relative to that of the exact method's."""
    columns = InParts(_slice(folder, each, rows, seed), "emb", "y")
    asked = dict(METHODS[method])
    chosen = registry.build(method, asked.pop("options", {}), "select")
    planned = partial(large.plan, columns, seed=seed)
    whole = planned(chosen, **{**asked, "part": rows}, memory=6 * rows**2 + 4 * 10**9)  # a forecast for tables
    plans = {
        "exact": whole,
        "parts": planned(chosen, **asked),
        "shares": planned(chosen, **{**asked, "part": 3 * asked["size"]}),
        "uniform": planned(registry.build("uniform", {}, "select"), size=asked["size"]),
    }
    torch.set_num_threads(1)
    objective, found, costs = _objective(whole), dict[str, float](), dict[str, Cost]()
    for name, plan in plans.items():
        with measure() as costs[name]:
            picked, _ = large.run(plan)
        found[name] = objective(picked)
    return {
        "seed": seed,
        "objective": found,
        "relative": {name: value / found["exact"] for name, value in found.items()},
        "cpu": {name: cost.cpu for name, cost in costs.items()},
        "exact_peak_bytes": costs["exact"].memory,
    }


def _slice(folder: Path, each: int, rows: int, seed: int) -> Path:
    """A file of so many rows of the table, others for every seed."""
    parquet = require("pyarrow.parquet", "parquet")
    path = folder / f"small-{rows}-{seed}.parquet"
    if not path.exists():
        first, last = seed * rows // each, ((seed + 1) * rows - 1) // each
        _table(folder, each, last + 1)
        names = [str(_file(folder, number)) for number in range(first, last + 1)]
        with atomic(path) as part:
            parquet.write_table(parquet.read_table(names).slice(seed * rows - first * each, rows), part)
    return path


def _objective(plan: large.LargePlan) -> Callable[[Selection], float]:
    """What a method minimises over all rows, as a function of its picks; the radius for those without an objective."""
    batch = next(large.parts_of(plan.columns, plan.jobs[0], x=True))
    x = torch.from_numpy(np.asarray(batch.x))
    seen, y = plan.scorer(), plan.known.codes(batch.labels)
    name = registry.entry_of(plan.method).name

    def value(picked: Selection) -> float:
        if name in ("uniform", "k-center") or seen is None:
            return float(_near(lambda rows: torch.cdist(x[rows], x), picked.indices).max())
        view = plan.method.seen(seen.view(x, y))
        metric = GradientDistance(view.gradients) if name == "craig" else CurvedDistance(view, 0.1, 20)
        return float(_near(metric.rows, picked.indices).sum())

    return value


def _near(rows: Callable[[Tensor], Tensor], picks: Tensor) -> Tensor:
    return torch.stack([rows(some).amin(0) for some in picks.split(50)]).amin(0)


def _file(folder: Path, number: int) -> Path:
    return folder / f"table-{number:02o}.parquet"  # in octal, so that a pattern names the first 8, 16, 32 and 64


def _table(folder: Path, rows: int, count: int) -> str:
    """The pattern of the first files, up to 64; those that are missing are made."""
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    folder.mkdir(parents=True, exist_ok=True)
    centres = np.random.default_rng(0).standard_normal((CENTRES, SIZE)).astype(np.float32)
    for number in range(count):
        path = _file(folder, number)
        if path.exists():
            continue
        rng = np.random.default_rng([1, number])
        which = rng.integers(0, CENTRES, rows)
        x = centres[which] + 0.5 * rng.standard_normal((rows, SIZE), dtype=np.float32)
        y = (which + (rng.random(rows) < 0.1) * rng.integers(1, CLASSES, rows)) % CLASSES
        keys = np.arange(number * rows, (number + 1) * rows)
        vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(x.ravel()), SIZE)
        with atomic(path) as part:
            made = arrow.table({"emb": vectors, "y": y, "key": keys})
            parquet.write_table(made, part, row_group_size=1 << 14, compression="none")
    few = f"0[0-{count - 1}]" if count <= 8 else f"[0-{count // 8 - 1}]?"
    return str(folder / f"table-{few}.parquet")
