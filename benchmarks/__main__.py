"""``python -m benchmarks`` runs every benchmark, ``python -m benchmarks NAME ...`` those that are named.

Runs that are already in a benchmark's work folder are not repeated, unless ``--fresh`` is given.
"""

from __future__ import annotations

import importlib
import pkgutil
import shutil
import sys

import benchmarks
from attar.core.errors import AttarError, unknown

FRESH = "--fresh"


def main(words: list[str]) -> None:
    """Run the benchmarks of these names, or all."""
    names = [word for word in words if word != FRESH]
    known = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")]
    for name in names:
        if name not in known:
            raise unknown("benchmark", name, known)
    for name in names or known:
        if FRESH in words:
            shutil.rmtree(benchmarks.WORK / name, ignore_errors=True)
        for path in importlib.import_module(f"benchmarks.{name}").main():
            sys.stdout.write(f"{name}: {path}\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except AttarError as error:
        sys.exit(f"benchmarks: {error}")
