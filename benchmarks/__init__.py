"""One file per claim: each runs a measurement and writes it into ``results``."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

from attar.core.files import write_text
from attar.data import Split
from attar.engine import Engine, keep_freed_memory
from attar.experts import experts
from attar.nets import default
from attar.plan import needs_of
from attar.report import accuracy_chart, write
from attar.study import Study, StudySpec
from attar.study.cross import TABLE
from attar.study.grid import Progress
from attar.study.runner import run_study

RESULTS = Path(__file__).parent / "results"
RECIPES = Path(__file__).parent / "recipes"
WORK = Path(__file__).parents[1] / "build" / "benchmarks"  #: files that are not committed
LARGEST = 500_000  #: largest size in bytes of a page that is committed


def carry_out(spec: StudySpec, name: str, workers: int = 2, split: Split | None = None) -> Study:
    """Run a study in the work folder of this name, or of a part of a benchmark, with the experts that its methods need.

    Runs that are already in that folder are not repeated. ``split`` replaces the spec's data.
    """
    keep_freed_memory()
    split, work, ran = spec.load_data(split), WORK / name, list[bool]()
    if spec.experts is None and any(needs_of(spec.method(method)).experts for method in spec.names):
        store = experts(split, spec.network or default(split.spec), workers=workers)
        spec = replace(spec, experts=store.folder)

    def watch(progress: Progress) -> None:
        ran.append(not progress.kept)
        sys.stderr.write(f"{progress.line}\n")

    command = f"python -m benchmarks {Path(name).parts[0]}"
    study = run_study(spec, split, work, command=command, engine=Engine(workers=workers), watch=watch)
    if not any(ran):
        tell_kept(work)
    return study


def tell_kept(work: Path) -> None:
    """Say that nothing was run, because the work folder holds every run."""
    sys.stderr.write(f"{work} has every run already: they are only published again; --fresh runs them anew.\n")


def recipe(name: str) -> StudySpec:
    """The spec of a committed recipe."""
    return StudySpec.read(RECIPES / f"{name}.toml")


def publish(study: Study, name: str) -> list[Path]:
    """Write a study's JSON file, table, chart and, if it is small enough, page; the folder it was made in stays."""
    work, folder = WORK / name, RESULTS / name
    study.save(folder / "study.json")
    write_text(folder / "table.csv", study.csv())
    write_text(folder / "accuracy.svg", accuracy_chart(study))
    for table in (TABLE, "transfer.csv"):
        if (work / table).exists():
            shutil.copy(work / table, folder / table)
    page = write(study, study.folder or folder, folder / "report.html")  # without the map, to be small
    if page.stat().st_size > LARGEST:
        page.unlink()
    return sorted(folder.iterdir())
