"""Class-incremental learning with memories of several methods: methods × seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from attar.condense.observers import Observer
from attar.continual.cell import Work, has_coresets, planned, run_job
from attar.continual.results import RESULT, Continual, Episode, StageInfo, curve
from attar.continual.spec import STAGES, ContinualSpec
from attar.continual.stages import by_class, by_set
from attar.core.device import device_of
from attar.core.files import write_text
from attar.core.lock import owned
from attar.core.signals import require_seconds
from attar.data import Split
from attar.data.data import require_per_class
from attar.data.load import Source
from attar.engine.pool import LOCAL, Engine, Where
from attar.experts import experts
from attar.infer.run import require_room
from attar.infer.separate import require_separate
from attar.nets import network
from attar.plan import needs_of
from attar.select.budget import BALANCED, per_class_of, warn_if_skewed
from attar.study.cells import complete, run_cells
from attar.study.grid import Progress, Seeded
from attar.study.progress import steps_of, write_jobs
from attar.study.results import versions
from attar.study.resume import OWN, of_methods, settle
from attar.study.settings import call_of
from attar.study.spec import FULL

GROWS = ("methods", "seeds", "baselines", *OWN)  # what may differ between calls for one folder
PLACES = ("data", "test_data", "columns", "resize")  # fingerprints say what they hold


def continual(
    spec: ContinualSpec | str | Path | Mapping[str, Any],
    *,
    data: Source | Split | list[Source | Split] | None = None,
    folder: str | Path = "continual",
    workers: int = 1,
    engine: Engine | Where = "local",
    device: str = "cpu",
    checkpoint_every: float | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Continual:
    """Let networks learn in stages, with memories that several methods fill, and write ``continual.json``.

    Finished runs are not repeated, and a run that was killed goes on after its last finished stage. The result covers
    all runs in the folder: with other methods or seeds it grows.

    Args:
        spec: What to run: a ``ContinualSpec``, the path of a TOML file, or a mapping of its fields.
        data: Replaces the spec's data: anything that ``attar.load`` takes, a ``Split``, or a list of these with one
            stage each.
        folder: Folder for all results; give the same one to resume or extend.
        workers: Processes that work at the same time. With more than one, a script must be guarded by
            ``if __name__ == "__main__"``.
        engine: ``local``, or ``ray`` (an extra); or an ``attar.Engine``, which has the workers, too.
        device: Where to compute: cpu, cuda, mps.
        checkpoint_every: Seconds between checkpoints of a method that learns, as for ``attar.reduce``.
        watch: Called with a ``Progress`` for every finished run, including those of earlier calls.
    """
    wanted = ContinualSpec.of(spec)
    place = device_of(device)
    splits = [split.to(place) for split in wanted.load_data(data)]
    command = call_of("continual", spec if isinstance(spec, str | Path) else wanted, ContinualSpec(), data)
    return run_continual(
        wanted,
        splits,
        folder,
        command=command,
        engine=Engine.of(engine, workers),
        checkpoint_every=checkpoint_every,
        watch=watch,
    )


def run_continual(
    spec: ContinualSpec,
    splits: Sequence[Split],
    folder: str | Path,
    *,
    command: str,
    engine: Engine = LOCAL,
    observers: Sequence[Observer] = (),
    checkpoint_every: float | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Continual:
    """Run on loaded data.

    Args:
        spec: What to run.
        splits: One data set, whose classes are divided into stages, or one for each stage.
        folder: Folder for all results.
        command: The command that repeats it, to be stored.
        engine: Where jobs run.
        observers: Called with the steps of methods that learn.
        checkpoint_every: Seconds between checkpoints, as for ``attar.reduce``.
        watch: Called with a ``Progress`` for every finished run.
    """
    if spec.fraction is not None:
        spec = replace(spec, per_class=per_class_of(splits[0].train, None, spec.fraction), fraction=None)
    for split in splits:
        warn_if_skewed(split.train.hard.bincount(), BALANCED)
    stages = by_set(splits) if len(splits) > 1 else by_class(splits[0], spec.stages or STAGES, spec.order)
    for stage in stages:
        require_per_class(stage.train.hard, stage.spec.target, spec.per_class)
    net = network(spec.network, stages[0].spec)
    require_separate(net)
    require_room(spec.draws, net)
    work = Work(replace(spec, network=net.name), stages, Path(folder), observers, require_seconds(checkpoint_every))
    with owned(folder):
        return _carry_out(work, command, engine, watch)


def _carry_out(work: Work, command: str, engine: Engine, watch: Callable[[Progress], None] | None) -> Continual:
    """Run what is missing, and write the result of all runs in the folder."""
    spec = work.spec
    jobs = [Seeded(name, seed) for name in _rows(spec) for seed in spec.seeds]
    new = None if complete(jobs, work.folder / "runs") else command
    settled = settle(work.folder, _shared(work), of_methods(spec.plain(), _rows(spec)), new)
    _prepare(work, jobs, engine)
    done = run_cells(
        run_job,
        work,
        jobs,
        work.folder / "runs",
        TypeAdapter(Episode),
        line=lambda run: f"{curve(run.validation, [stage.val for stage in _about(work)])[-1]:.1%} on validation",
        whole=partial(has_coresets, work),
        engine=engine,
        watch=watch,
    )
    names = list(dict.fromkeys([job.method for job in jobs] + [run.method for run in done.values()]))
    names.sort(key=lambda name: name == FULL)
    runs = sorted(done.values(), key=lambda run: (names.index(run.method), run.seed))
    config = {**spec.plain(), "stages": len(work.stages), "methods": names, "seeds": sorted({run.seed for run in runs})}
    config |= settled.tables
    told = " && ".join(settled.commands) or command
    found = Continual(told, config, _about(work), runs, majority=_majority(work), folder=work.folder)
    found.save(work.folder / RESULT)
    write_text(work.folder / "continual.csv", found.csv())
    return found


def _rows(spec: ContinualSpec) -> list[str]:
    """All methods, and the memory of all data if ``baselines`` is set."""
    return [*spec.study.names, *([FULL] if spec.baselines else [])]


def _prepare(work: Work, jobs: Sequence[Seeded], engine: Engine) -> None:
    """Train the experts that methods need, and find every other error before anything runs."""
    methods = list(dict.fromkeys(job.method for job in jobs if job.method != FULL))
    if any(needs_of(work.spec.study.method(method)).experts for method in methods):
        for number, split in enumerate(work.stages):
            place, seconds = work.experts(number), work.checkpoint_every
            experts(split, work.spec.network, folder=place, engine=engine, checkpoint_every=seconds)
    plans = {
        (method, stage): planned(work, method, stage, seed=0) for method in methods for stage in range(len(work.stages))
    }
    learnt = [(job, stage) for job in jobs if job.method != FULL for stage in range(len(work.stages))]
    steps = {work.file("logs", job, stage).stem: steps_of(plans[job.method, stage]) for job, stage in learnt}
    write_jobs(work.folder, steps)


def _about(work: Work) -> list[StageInfo]:
    return [
        StageInfo(split.spec.name, list(split.spec.target.names), len(split.train), len(split.val), len(split.test))
        for split in work.stages
    ]


def _majority(work: Work) -> list[float]:
    """Test accuracy of always answering the most frequent training class of the stages so far, after every stage."""
    train, test = Counter[str](), Counter[str]()
    shares = []
    for split in work.stages:
        for counts, part in ((train, split.train), (test, split.test)):
            counts.update(split.spec.target.names[place] for place in part.hard.tolist())
        shares.append(test[max(train, key=train.__getitem__)] / test.total())
    return shares


def _shared(work: Work) -> dict[str, Any]:
    """The settings of all runs of a folder."""
    plain = {name: value for name, value in work.spec.plain().items() if name not in (*GROWS, *PLACES)}
    prints = [[split.train.fingerprint, split.val.fingerprint, split.test.fingerprint] for split in work.stages]
    stages = [asdict(stage) for stage in _about(work)]
    return {"kind": "continual", **plain, "stages": stages, "fingerprints": prints, "attar": versions()["attar"]}
