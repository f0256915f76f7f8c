"""Claim: on the embedded digits, learnt examples train a better network than as many random or herded ones.

All runs share one network, one training budget and five seeds. A run that is cut off goes on where it stopped.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import attar
from attar.engine import keep_freed_memory
from attar.evaluate import Run
from attar.evaluate.protocol import Job, compare
from attar.files import write_text
from attar.report import accuracy_chart, write
from benchmarks import RESULTS, WORK

METHODS, PER_CLASS, SEEDS, DRAWS, WORKERS = ["dm", "dc"], [1, 10], range(5), 3, 2
# A step of dc at 10 per class costs six of dm, so it takes half as many: all is done in ten minutes on two free cores.
STEPS = {"dm": 300, "dc": 150}
LARGEST = 500_000  #: bytes of a page that may be committed


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
        watch=_tell,
    )
    study.save(folder / "study.json")
    write_text(folder / "table.csv", study.csv())
    write_text(folder / "accuracy.svg", accuracy_chart(study))
    page = write(study, work, folder / "report.html")
    if page.stat().st_size > LARGEST:
        page.unlink()
    shutil.rmtree(work)  # else the next call would only copy what this one found
    return sorted(folder.iterdir())


def _tell(job: Job, runs: list[Run]) -> None:
    sys.stderr.write(f"{job.key}: {runs[0].test.accuracy:.1%}\n")
