"""One file per claim: each measures something for real and writes what it found into ``results``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import attar
from attar.cli.options import read_study
from attar.core import registry
from attar.core.files import write_text
from attar.engine import keep_freed_memory
from attar.experts import experts
from attar.nets.train import Training
from attar.plan import needs_experts
from attar.report import accuracy_chart, write
from attar.study import Run, Study
from attar.study.cross import TABLE, cross
from attar.study.runner import Job, compare

RESULTS = Path(__file__).parent / "results"
RECIPES = Path(__file__).parent / "recipes"
WORK = Path(__file__).parents[1] / "build" / "benchmarks"  #: what is not committed
LARGEST = 500_000  #: bytes of a page that may be committed


def carry_out(recipe: str, name: str, baselines: bool = True, workers: int = 2) -> Study:
    """The study of a committed recipe, with the experts that its methods need, in the work folder of that name."""
    keep_freed_memory()
    file, work = read_study(RECIPES / f"{recipe}.toml"), WORK / name
    assert file.data
    assert file.methods
    assert file.per_class
    assert file.network
    split = attar.load(file.data)
    needed = any(needs_experts(file.variants.get(method, method)) for method in file.methods)
    study = compare(
        split,
        file.methods,
        file.per_class,
        folder=work,
        seeds=file.seeds or [0, 1, 2],
        network=file.network,
        training=registry.make(Training, file.training, recipe),
        draws=file.draws or 3,
        options=file.options,
        descent=file.descent,
        variants=file.variants,
        experts=experts(split, file.network, workers=workers).folder if needed else None,
        baselines=baselines,
        workers=workers,
        command=f"python -m benchmarks {name}",
        watch=tell,
    )
    if file.transfer:
        cross(study, split, work, file.transfer, workers=workers, watch=lambda line: print(line, file=sys.stderr))
    return study


def publish(study: Study, work: Path, folder: Path) -> list[Path]:
    """Write a study's JSON file, table, chart and, if it is small enough, page; the folder it was made in goes."""
    study.save(folder / "study.json")
    write_text(folder / "table.csv", study.csv())
    write_text(folder / "accuracy.svg", accuracy_chart(study))
    for table in (TABLE, "transfer.csv"):
        if (work / table).exists():
            shutil.copy(work / table, folder / table)
    page = write(study, work, folder / "report.html")
    if page.stat().st_size > LARGEST:
        page.unlink()
    shutil.rmtree(work)  # else the next call would only copy what this one found
    return sorted(folder.iterdir())


def tell(job: Job, runs: list[Run]) -> None:
    """Say on standard error that a run is there, and what it reached on validation: test is for the finished table."""
    sys.stderr.write(f"{job.key}: {runs[0].validation.accuracy:.1%}\n")
