"""Methods × sizes × seeds on one data set, one network and one training budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from attar.assess.score import made_from, most_frequent
from attar.condense.observers import Observer
from attar.core import registry
from attar.core.device import device_of
from attar.core.errors import Diverged
from attar.core.files import inside
from attar.core.lock import owned
from attar.core.signals import require_seconds
from attar.coreset import Coreset
from attar.data import Split
from attar.data.load import Source
from attar.engine.pool import LOCAL, Engine, Where, run_all
from attar.nets import network as build_network
from attar.nets.calibrate import decide
from attar.nets.fast.modes import AUTO, NONE
from attar.select.budget import BALANCED, warn_if_skewed
from attar.study.cell import Work, run_job, tidy
from attar.study.cells import attempt, intact, require_converged, usable
from attar.study.cross import cross
from attar.study.grid import Job, Progress, grid
from attar.study.prepare import prepare
from attar.study.progress import steps_of, write_jobs
from attar.study.protocol import HONEST
from attar.study.results import Run, Study, versions
from attar.study.resume import began_with, finished, in_order, of_methods, settle
from attar.study.settings import call_of
from attar.study.spec import StudySpec

SHARED = ("network", "training", "draws", "sampler", "sampler_options", "evaluations")  # the same for all runs

Watch = Callable[[Progress], None]


def compare(
    spec: StudySpec | str | Path | Mapping[str, Any],
    *,
    data: Source | Split | None = None,
    folder: str | Path = "comparison",
    workers: int = 1,
    engine: Engine | Where = "local",
    device: str = "cpu",
    accelerate: str = NONE,
    checkpoint_every: float | None = None,
    watch: Watch | None = None,
) -> Study:
    """Compare methods, sizes and seeds, and write ``study.json`` into ``folder``.

    Finished runs are not repeated. The study covers all runs in the folder: with other seeds, sizes or methods in the
    same folder, it grows.

    Args:
        spec: What to compare: a ``StudySpec``, the path of a TOML file, or a mapping of the fields of ``StudySpec``.
        data: Replaces the spec's data: anything that ``attar.load`` takes, or a ``Split``.
        folder: Folder for all results; give the same one to resume or extend a study.
        workers: Processes that work at the same time. With more than one, a script must be guarded by
            ``if __name__ == "__main__"``.
        engine: ``local``, or ``ray`` (an extra); or an ``attar.Engine``, which has the workers, too.
        device: Where to compute: cpu, cuda, mps.
        accelerate: How gradients are computed, as for ``attar.reduce``, in all runs but the training to convergence and
            on other networks; with ``auto``, a study that exists goes on as it began.
        checkpoint_every: Seconds between checkpoints of a method that learns, as for ``attar.reduce``.
        watch: Called with a ``Progress`` for every finished part, including those of earlier calls.
    """
    wanted = StudySpec.of(spec)
    split = wanted.load_data(data).to(device_of(device))
    warn_if_skewed(split.train.hard.bincount(), wanted.budget)
    command = call_of("compare", spec if isinstance(spec, str | Path) else wanted, StudySpec(), data)
    return run_study(
        wanted,
        split,
        folder,
        command=command,
        engine=Engine.of(engine, workers),
        accelerate=accelerate,
        checkpoint_every=checkpoint_every,
        watch=watch,
    )


def run_study(
    spec: StudySpec,
    split: Split,
    folder: str | Path,
    *,
    command: str,
    engine: Engine = LOCAL,
    accelerate: str = NONE,
    observers: Sequence[Observer] = (),
    checkpoint_every: float | None = None,
    watch: Watch | None = None,
) -> Study:
    """Run a study on loaded data.

    Args:
        spec: What to compare.
        split: The data.
        folder: Folder for all results.
        command: The command that repeats it, to be stored.
        engine: Where jobs run.
        accelerate: How gradients are computed, as for ``compare``.
        observers: Called with the steps of methods that learn.
        checkpoint_every: Seconds between checkpoints, as for ``attar.reduce``.
        watch: Called with a ``Progress`` for every finished part.
    """
    spec = spec.sized(split)
    jobs, seconds = grid(spec), require_seconds(checkpoint_every)
    work = replace(prepare(spec, split, folder, jobs, observers=observers), checkpoint_every=seconds)
    with owned(folder):
        if accelerate != NONE:
            work = _accelerated(work, accelerate, engine.at_most(len(jobs)).workers)
        study = carry_out(work, jobs, command, engine, watch)
        if spec.transfer:
            cross(study, split, Path(folder), spec.transfer, engine=engine, watch=watch)
    return study


def _accelerated(work: Work, wanted: str, workers: int) -> Work:
    """The study with its acceleration: where ``auto`` is wanted, that with which it began."""
    if wanted == AUTO:
        wanted = began_with(work.folder) or AUTO
    net = build_network(work.spec.network, work.split.spec)
    mode = decide(wanted, net, work.split.train, work.spec.training, workers)
    plans = {key: replace(decided, accelerate=mode) for key, decided in work.plans.items()}
    return replace(work, plans=plans, accelerate=mode)


def study_coreset(
    coreset: Coreset,
    split: Split,
    folder: str | Path,
    *,
    evaluations: int = 3,
    draws: int = 5,
    converged: bool = True,
    command: str = "attar.report(...)",
    watch: Watch | None = None,
) -> Study:
    """Evaluate a coreset and baselines of the same size and seed, with its own network and training settings.

    Args:
        coreset: The coreset.
        split: The data that it was made from.
        folder: Folder for all results.
        evaluations: Posteriors of the coreset and of each baseline.
        draws: Networks whose predictions are averaged.
        converged: Whether the full data is also trained to convergence.
        command: The command that repeats it, to be stored.
        watch: Called with a ``Progress`` for every finished part.
    """
    recipe = coreset.recipe
    made_from(coreset, split)
    registry.find(recipe.method, *registry.REDUCERS)  # the name comes from a file and becomes part of a path
    spec = StudySpec(
        methods=(),
        per_class=(recipe.per_class,),
        seeds=(recipe.seed,),
        network=recipe.network,
        training=recipe.training,
        draws=draws,
        evaluations=evaluations,
        converged=converged,
    )
    given = Job(recipe.method, recipe.per_class, recipe.seed)
    jobs = [given, *(job for job in grid(spec) if job.method != recipe.method)]
    work = prepare(spec, split, folder, jobs, given={given: coreset.to(split.train.device)})
    with owned(folder):
        return carry_out(work, jobs, command, watch=watch)


def carry_out(
    work: Work,
    jobs: Sequence[Job],
    command: str,
    engine: Engine = LOCAL,
    watch: Watch | None = None,
) -> Study:
    """Run the jobs that have no result yet, and write the study of all runs in the folder."""
    folder, about, wanted = work.folder, describe(work.split), {job.key: job for job in jobs}
    config = work.spec.plain()
    other = {"protocol": work.spec.protocol, "own": work.spec.own} if work.spec.protocol != HONEST else {}
    other |= {} if work.spec.budget == BALANCED else {"budget": work.spec.budget}
    other |= {} if work.accelerate == NONE else {"accelerate": work.accelerate}
    shared = {name: config[name] for name in SHARED} | other | {"data": about, "attar": versions()["attar"]}
    own = _own(work, jobs)
    settled = settle(folder, shared, own)  # a folder of other settings is refused before anything there is renamed
    done = usable(partial(finished, folder))
    done = {key: runs for key, runs in done.items() if key not in wanted or _whole(folder, wanted[key], runs)}
    if any(job.key not in done for job in jobs):
        settled = settle(folder, shared, own, command)
    write_jobs(folder, {job.key: steps_of(work.plans.get((job.method, job.per_class or 0))) for job in jobs})
    count, diverged = 0, dict[str, Diverged]()
    for job, result, kept in _results(work, jobs, done, engine):
        if isinstance(result, Diverged):
            diverged[job.key] = result
            continue
        done[job.key], count = result, count + 1
        if watch:
            line = f"{job.key}: {result[0].validation.accuracy:.1%} on validation"
            watch(Progress("runs", count, len(jobs), line, kept))
    require_converged(diverged)
    written = {name: config[name] for name in ("protocol", *SHARED)} | settled.tables
    written |= {"loading": _loading(work.split), "budget": work.spec.budget}
    written |= {} if work.accelerate == NONE else {"accelerate": work.accelerate}
    runs = in_order(done, jobs)
    known = about | {"majority": most_frequent(work.split.train)}
    study = Study(" && ".join(settled.commands) or command, written, known, runs, folder=folder)
    study.save(folder / "study.json")
    return study


def _whole(folder: Path, job: Job, runs: Sequence[Run]) -> bool:
    """Whether the coresets of a finished job can be read; if not, it is run again."""
    if job.per_class is None:
        return True
    files = {job.coreset, *(run.coreset for run in runs if run.coreset)}
    return all((path := inside(folder, file)) is not None and intact(path) for file in files)


def _results(
    work: Work, jobs: Sequence[Job], done: Mapping[str, list[Run]], engine: Engine
) -> Iterator[tuple[Job, list[Run] | Diverged, bool]]:
    """The runs of every job and whether they were already done: those first, then the others as they finish."""
    for job in jobs:
        if job.key in done:
            tidy(work, job)
            yield job, done[job.key], True
    missing = [job for job in jobs if job.key not in done]
    for job, result in run_all(partial(attempt, run_job), work, missing, engine):
        yield job, result, False


def describe(split: Split) -> dict[str, Any]:
    """The data of a study: name, classes, sizes and fingerprints."""
    return {
        "name": split.spec.name,
        "classes": list(split.spec.target.names),
        "shape": list(split.shape),
        "fingerprint": split.train.fingerprint,
        "held_out": [split.val.fingerprint, split.test.fingerprint],
        "train": len(split.train),
        "val": len(split.val),
        "test": len(split.test),
    }


def _loading(split: Split) -> dict[str, Any]:
    """How the data was loaded, if known; without paths, because studies and reports are shared.

    The length is only of texts, columns only of tables, and the size only of resized images.
    """
    how = asdict(split.origin) if split.origin else {}
    unset = {name for name in ("length", "columns", "resize") if how.get(name) is None}
    left_out = {"source", "test_source", "vectors", *unset}
    return {name: value for name, value in how.items() if name not in left_out}


def _own(work: Work, jobs: Sequence[Job]) -> dict[str, dict[str, Any]]:
    """The settings of single methods."""
    own = of_methods(work.spec.plain(), [job.method for job in jobs])
    for (name, _), decided in work.plans.items():
        if decided.experts is not None:
            own[name]["experts"] = decided.experts.manifest.identity
        if decided.base is not None:
            own[name]["base"] = decided.base.fingerprint
    for job, coreset in work.given.items():
        own[job.method]["coreset"] = coreset.data.fingerprint
    return own
