"""One file per claim: each measures something for real and writes what it found into ``results``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from attar.evaluate import Run, Study
from attar.evaluate.protocol import Job
from attar.files import write_text
from attar.report import accuracy_chart, write

RESULTS = Path(__file__).parent / "results"
WORK = Path(__file__).parents[1] / "build" / "benchmarks"  #: what is not committed
LARGEST = 500_000  #: bytes of a page that may be committed


def publish(study: Study, work: Path, folder: Path) -> list[Path]:
    """Write a study's JSON file, table, chart and, if it is small enough, page; the folder it was made in goes."""
    study.save(folder / "study.json")
    write_text(folder / "table.csv", study.csv())
    write_text(folder / "accuracy.svg", accuracy_chart(study))
    page = write(study, work, folder / "report.html")
    if page.stat().st_size > LARGEST:
        page.unlink()
    shutil.rmtree(work)  # else the next call would only copy what this one found
    return sorted(folder.iterdir())


def tell(job: Job, runs: list[Run]) -> None:
    """Say on standard error that a run is there."""
    sys.stderr.write(f"{job.key}: {runs[0].test.accuracy:.1%}\n")
