"""Claim: apart from torch, which its users have installed anyway, the library is small and quick to import.

`attar --help` takes less than half the processor time of `import torch`; both are measured alternately.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from functools import cache
from importlib.metadata import Distribution, distribution
from pathlib import Path
from statistics import median
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from attar.core.files import write_json
from attar.study.results import machine, versions
from benchmarks import RESULTS

REPEATS = 7
EXTRAS = ("augment", "hf", "parquet", "mat", "sklearn", "ray", "track", "attack", "reference")
IMPORT = """
import time, torch
start = time.process_time()
import attar
attar.load  # the names are loaded when the first of them is used
print(time.process_time() - start)
"""


def main() -> list[Path]:
    """Measure and write one JSON file."""
    seconds = [_import_seconds() for _ in range(REPEATS)]
    beside = beside_torch()
    result = {
        "command": "python -m benchmarks footprint",
        "import_seconds_after_torch": {"median": median(seconds), "all": seconds},
        "help": _help(),
        "beside_torch": {"bytes": sum(beside.values()), "packages": _listed(beside)},
        "torch_and_what_it_needs": {"bytes": sum(sizes("torch").values()), "packages": _listed(sizes("torch"))},
        "extras_beside_the_core": {extra: sum(of_extra(extra).values()) for extra in EXTRAS},
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / "footprint" / "footprint.json"
    write_json(path, result)
    return [path]


def beside_torch() -> dict[str, int]:
    """Installed bytes of every package that the core needs and torch does not bring."""
    known = sizes("torch")
    return {name: size for name, size in sizes("attar").items() if name not in known and name != "attar"}


def of_extra(extra: str) -> dict[str, int]:
    """Installed bytes of every package that one extra adds to the core."""
    core = sizes("attar")
    return {name: size for name, size in sizes("attar", extra).items() if name not in core}


@cache
def sizes(package: str, *extras: str) -> dict[str, int]:
    """Installed bytes of a package and of all that it needs, by name."""
    return {name: _bytes(found) for name, found in sorted(_closure(package, frozenset(extras)).items())}


def _closure(package: str, extras: frozenset[str] = frozenset()) -> dict[str, Distribution]:
    top = distribution(package)
    found: dict[str, Distribution] = {canonicalize_name(package): top}
    for line in top.requires or []:
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            found |= _closure(needed.name, frozenset(needed.extras))
    return found


def _bytes(package: Distribution) -> int:
    paths = (Path(str(package.locate_file(file))) for file in package.files or [])
    return sum(path.stat().st_size for path in paths if path.is_file())


def _listed(packages: dict[str, int]) -> dict[str, dict[str, str | int]]:
    return {name: {"version": distribution(name).version, "bytes": size} for name, size in packages.items()}


def _import_seconds() -> float:
    answer = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    return float(answer.stdout)


def _help() -> dict[str, Any]:
    """Processor seconds of `attar --help` and of `import torch`."""
    ways = {
        "attar --help": [str(Path(sys.executable).with_name("attar")), "--help"],
        "import torch": [sys.executable, "-c", "import torch"],
    }
    rounds = [{way: _cpu(command) for way, command in ways.items()} for _ in range(REPEATS)]
    seconds = {way: {"median": median(r[way] for r in rounds), "all": [r[way] for r in rounds]} for way in ways}
    return {
        "share_of_importing_torch": median(r["attar --help"] / r["import torch"] for r in rounds),
        "cpu_seconds": seconds,
    }


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
