"""Claim: on the embedded digits, learnt examples train a better network than as many random or herded ones.

All runs share one network, one training budget and five seeds. A run that is cut off goes on where it stopped.
"""

from __future__ import annotations

from pathlib import Path

import attar
from attar.engine import keep_freed_memory
from attar.study.runner import compare
from benchmarks import RESULTS, WORK, publish, tell

METHODS, PER_CLASS, SEEDS, DRAWS, WORKERS = ["dm", "dc"], [1, 10], range(5), 3, 2
# A step of dc at 10 per class costs six of dm, so it takes half as many: all is done in ten minutes on two free cores.
STEPS = {"dm": 300, "dc": 150}


def main() -> list[Path]:
    """Run the study; write its JSON file, table, chart and, if it is small enough, page."""
    keep_freed_memory()
    work, folder = WORK / "digits", RESULTS / "digits"
    study = compare(
        attar.load("digits"),
        METHODS,
        PER_CLASS,
        folder=work,
        seeds=SEEDS,
        draws=DRAWS,
        descent={name: {"steps": steps} for name, steps in STEPS.items()},
        workers=WORKERS,
        command="python -m benchmarks digits",
        watch=tell,
    )
    return publish(study, work, folder)
