"""Question: are coresets of use as memories of class-incremental learning, and as proxy sets of architecture search?

Fashion-MNIST, with the recipes in ``recipes/applications``. Choices are made on validation images; the test set is used
once per figure. An interrupted benchmark resumes.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from attar.continual import ContinualSpec
from attar.continual.run import run_continual
from attar.engine import Engine, keep_freed_memory
from attar.nas import NasSpec
from attar.nas.run import run_nas
from attar.report import report
from attar.study.grid import Progress
from benchmarks import LARGEST, RECIPES, RESULTS, WORK

NAME, CONTINUAL, SEARCH = "applications", "continual-fashion", "nas-fashion"
COMMAND = f"python -m benchmarks {NAME}"


def main(workers: int = 2) -> list[Path]:
    """Run both and publish what they found."""
    keep_freed_memory()
    engine = Engine(workers=workers)
    stages = ContinualSpec.of(RECIPES / NAME / f"{CONTINUAL}.toml")
    search = NasSpec.of(RECIPES / NAME / f"{SEARCH}.toml")
    places = [WORK / NAME / name for name in (CONTINUAL, SEARCH)]
    run_continual(stages, stages.load_data(), places[0], command=COMMAND, engine=engine, watch=tell)
    run_nas(search, search.load_data(), places[1], command=COMMAND, engine=engine, watch=tell)
    return [path for place in places for path in published(place)]


def tell(progress: Progress) -> None:
    sys.stderr.write(f"{progress.line}\n")


def published(work: Path) -> list[Path]:
    """Copy the JSON file and the table of an application, and write its page if it is small enough."""
    folder = RESULTS / NAME / work.name
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*work.glob("*.csv"), *(path for path in work.glob("*.json") if path.name != "config.json")]:
        shutil.copy(path, folder / path.name)
    page = report(work, folder / "report.html")
    if page.stat().st_size > LARGEST:
        page.unlink()
    return sorted(folder.iterdir())
