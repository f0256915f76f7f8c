"""Question: is every method at least as good as it was at an earlier commit, with the same number of steps?

The environment variable ``BASE`` names a checkout of the earlier commit, for example
``git worktree add ../base e9d7012``. Each checkout reduces Fashion-MNIST by every method that both have, with its own
defaults but for the settings below, and evaluates the coresets on validation images with their recommended inference.
The test set is never read. Seeds do not pair the two sides, whose random streams differ, so the interval is that of a
difference of two means (Welch). Finished runs are kept, so an interrupted benchmark resumes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from pathlib import Path
from statistics import mean, variance
from typing import Any

from attar.assess.statistics import t_quantile
from attar.core.errors import AttarError
from attar.core.files import read_json, write_json
from attar.study.results import machine, versions
from benchmarks import RESULTS, WORK, _reducing

NAME, HERE = "before_after", Path(__file__).parents[1]
SEEDS, SIZES = (0, 1, 2), (1, 10)
SETTING = {
    "data": "fashion-mnist",
    "train": 5_000,
    "network": "convnet-d3w8",
    "training_steps": 100,
    "draws": 1,
    "trajectories": 4,
    "expert_epochs": 1,
}
SELECTORS = [
    "adacore",
    "contextual-diversity",
    "craig",
    "el2n",
    "entropy",
    "forgetting",
    "frank-wolfe",
    "giga",
    "glister",
    "glister-val",
    "gradmatch",
    "gradmatch-val",
    "grand",
    "herding",
    "k-center",
    "lcmat-s",
    "least-confidence",
    "margin",
    "sparse-vi",
    "uniform",
]
EXPERTS = ("mtt", "bpc-cd", "bpc-fkl", "bpc-w")
#: Options and steps of methods that learn, for some seconds of a core; all other options are defaults.
LEARNERS: dict[str, tuple[dict[str, Any], int]] = {
    "dm": ({"batch": 64}, 50),
    "dc": ({"batch": 64, "net_steps": 10}, 20),
    "dsa": ({"batch": 64, "net_steps": 10}, 20),
    "cafe": ({"batch": 64, "net_steps": 10, "query": 16}, 20),
    "lcmat-c": ({"batch": 64, "net_steps": 5}, 20),
    "mtt": ({"net_steps": 10}, 30),
    "kip": ({}, 100),
    "label-solve": ({}, 1),
    "bpc-cd": ({}, 50),
    "bpc-fkl": ({}, 20),
    "bpc-rkl": ({}, 50),
    "bpc-w": ({}, 30),
    "vbpc": ({}, 100),
}


def main() -> list[Path]:
    """Do what is not done yet, and write one JSON file."""
    base = os.environ.get("BASE")
    if not base:
        raise AttarError("BASE must name a checkout of the earlier commit: `git worktree add ../base e9d7012`.")
    checkouts = {"before": Path(base), "after": HERE}
    with ThreadPoolExecutor(len(checkouts)) as pool:  # both at the same time
        found = dict(zip(checkouts, pool.map(_side, checkouts.values(), checkouts), strict=True))
    commits = {side: _commit(checkout) for side, checkout in checkouts.items()}
    table = [_row(method, size, found) for method in _methods() for size in SIZES]
    path = RESULTS / NAME / "before_after.json"
    about = {"setting": SETTING, "seeds": SEEDS, "learners": LEARNERS, "commits": commits}
    command = {"command": "BASE=<checkout of the earlier commit> python -m benchmarks before_after"}
    write_json(path, command | about | {"rows": table, "versions": versions(), "machine": machine()})
    return [path]


def _methods() -> list[str]:
    return [*SELECTORS, *LEARNERS]


def _jobs() -> Iterator[dict[str, Any]]:
    """All jobs, seed by seed, so that an interrupted benchmark has whole seeds."""
    for seed in SEEDS:
        for method in _methods():
            options, steps = LEARNERS.get(method, ({}, 0))
            for size in SIZES:
                job = {"method": method, "per_class": size, "seed": seed, "options": options, "steps": steps}
                yield job | {"experts": method in EXPERTS}


def _side(checkout: Path, side: str) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The scores of every method and size in one checkout, one per seed."""
    work, found = WORK / NAME / side, dict[tuple[str, int], list[dict[str, Any]]]()
    process = None
    for job in _jobs():
        path = work / f"{job['method']}-{job['per_class']}-{job['seed']}.json"
        if not path.exists():
            process = process or _process(checkout, work)
            write_json(path, _ask(process, job))
            sys.stderr.write(f"{side} {path.stem}\n")
        found.setdefault((job["method"], job["per_class"]), []).append(read_json(path))
    return found


def _row(method: str, size: int, found: dict[str, dict[tuple[str, int], list[dict[str, Any]]]]) -> dict[str, Any]:
    sides = {side: runs[method, size] for side, runs in found.items()}
    before, after = ([100 * run["accuracy"] for run in sides[side]] for side in ("before", "after"))
    difference, half = welch(before, after)
    order = "not distinguishable" if abs(difference) <= half else "better" if difference > 0 else "worse"
    return {"method": method, "per_class": size, "difference": difference, "half": half, "order": order} | sides


def welch(before: list[float], after: list[float]) -> tuple[float, float]:
    """Difference of two means, and half the width of its 95 % interval."""
    parts = [variance(values) / len(values) for values in (before, after)]
    total = sum(parts)
    if not total:
        return mean(after) - mean(before), 0.0
    freedom = total**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (before, after), strict=True))
    return mean(after) - mean(before), t_quantile(int(freedom)) * sqrt(total)


def _process(checkout: Path, work: Path) -> subprocess.Popen[str]:
    one = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": f"{checkout / 'src'}:{checkout}"}
    work.mkdir(parents=True, exist_ok=True)
    command, pipe = [sys.executable, "-P", str(_reducing.__file__), json.dumps(SETTING), str(work)], subprocess.PIPE
    return subprocess.Popen(command, cwd=checkout, env=os.environ | one, stdin=pipe, stdout=pipe, text=True)


def _ask(process: subprocess.Popen[str], job: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
