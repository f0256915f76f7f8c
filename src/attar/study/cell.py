"""One job of a study: make a coreset, infer its posteriors, score them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from attar.assess.score import evaluate
from attar.condense.observers import Observer, film, log
from attar.core import registry
from attar.core.cost import Cost, measure
from attar.core.streams import seed_of
from attar.coreset import Coreset
from attar.data import Split
from attar.infer import infer
from attar.plan import Plan
from attar.reduce import run
from attar.study.grid import Job
from attar.study.results import Run
from attar.study.resume import finish
from attar.study.spec import FULL, StudySpec

CURVE = 200  # points kept of a learning curve


@dataclass(frozen=True)
class Work:
    """A study that is fully specified but not run; every worker gets it once."""

    spec: StudySpec  #: with the name of its network filled in
    split: Split
    folder: Path  #: folder of runs, coresets, logs, films and checkpoints
    plans: Mapping[tuple[str, int], Plan]  #: by method and size; a run adds its seed
    given: Mapping[Job, Coreset] = field(default_factory=dict)  #: coresets that already exist
    observers: Sequence[Observer] = ()  #: of the steps of methods that learn

    def checkpoint(self, job: Job) -> Path:
        """The checkpoint of an unfinished reduction."""
        return self.folder / "checkpoints" / f"{job.key}.safetensors"

    def log(self, job: Job) -> Path:
        """The log of a method that learns, one line per step."""
        return self.folder / "logs" / f"{job.key}.jsonl"


def run_job(work: Work, job: Job) -> list[Run]:
    """Reduce once, then infer and score once per evaluation. All files are written before it returns."""
    coreset, file = (None, None) if job.per_class is None else _coreset(work, job, job.per_class)
    runs = [_evaluated(work, job, coreset, file, number) for number in range(work.spec.evaluations)]
    finish(work.folder, job, runs)
    work.checkpoint(job).unlink(missing_ok=True)  # until now, the coreset could be restored from it
    return runs


def evaluation_seed(seed: int, number: int = 0) -> int:
    """The seed of a posterior, from the seed of its coreset and a count; a hash, so it meets no user's seed."""
    return seed_of("evaluation", seed, number)


def noted(notes: Mapping[str, Any]) -> dict[str, Any]:
    """What a study keeps of a posterior's notes: diagnostics, and the label of a start from experts."""
    kept = ("rhat", "ess", "warnings", "label", "sampler")
    return {key: notes[key] for key in kept if notes.get(key)}


def _evaluated(work: Work, job: Job, coreset: Coreset | None, file: str | None, number: int) -> Run:
    split, spec = work.split, work.spec
    with measure() as infer_cost:
        posterior = infer(
            split.train if coreset is None else coreset,
            spec.sampler,
            draws=spec.draws,
            seed=evaluation_seed(job.seed, number),
            network=spec.network,
            training=spec.training
            if coreset is None
            else coreset.training,  # the same settings, and the learnt step size
            options=spec.sampler_options,
        )
    return Run(
        job.method,
        FULL if coreset is None else registry.find(spec.method(job.method)).family,
        job.per_class,
        job.seed,
        len(split.train) if coreset is None else len(coreset),
        evaluate(posterior, split.val),
        evaluate(posterior, split.test),
        Cost() if coreset is None else coreset.recipe.cost,
        infer_cost,
        _curve(work.log(job)),
        file,
        number,
        noted(posterior.notes),
    )


def _coreset(work: Work, job: Job, size: int) -> tuple[Coreset, str]:
    """The job's coreset, and its file relative to the study's folder."""
    name = f"coresets/{job.key}.safetensors"
    coreset = work.given.get(job)
    if coreset is None:
        watching: list[Observer] = [
            partial(log, path=work.log(job)),
            partial(film, path=work.folder / "films" / f"{job.key}.safetensors"),
        ]
        decided = replace(work.plans[job.method, size], seed=job.seed)
        coreset = run(decided, [*watching, *work.observers], work.checkpoint(job))
    coreset.save(work.folder / name)
    return coreset, name


def _curve(path: Path) -> list[tuple[int, float]]:
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    thin = max(1, len(lines) // CURVE)
    return [(line["step"], line["loss"]) for line in lines[::thin]]
