"""One file per claim: each measures something for real and writes what it found into ``results``."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path(__file__).parent / "results"
WORK = Path(__file__).parents[1] / "build" / "benchmarks"  #: what is not committed
