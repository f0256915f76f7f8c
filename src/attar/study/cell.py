"""One job of a study: make a coreset, infer its posteriors, score them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

from attar.assess.answers import answers
from attar.assess.converged import converged
from attar.assess.metrics import score
from attar.assess.score import evaluate, probabilities
from attar.condense.observers import Observer, film, log
from attar.core import budget, registry
from attar.core.cost import Cost, measure
from attar.core.errors import DamagedFile
from attar.core.files import read_bytes, set_aside
from attar.core.streams import seed_of
from attar.coreset import Coreset
from attar.data import Split
from attar.infer import Draws, infer
from attar.nets import network as build_network
from attar.nets.fast.modes import NONE, using
from attar.plan import Plan
from attar.select.budget import BALANCED
from attar.study.best import best_epoch, joined, saved, snapshots, the_best, tried
from attar.study.cells import intact, reduced
from attar.study.grid import Job
from attar.study.protocol import Evaluation
from attar.study.results import Run
from attar.study.resume import finish
from attar.study.spec import CONVERGED, FULL, StudySpec

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
    #: by method and size, where the protocol is not the same for all
    rules: Mapping[tuple[str, int | None], Evaluation] = field(default_factory=dict)
    checkpoint_every: float | None = None  #: seconds, as for ``reduce``
    accelerate: str = NONE  #: how gradients are computed

    def checkpoint(self, job: Job) -> Path:
        """The checkpoint of an unfinished reduction."""
        return self.folder / "checkpoints" / f"{job.key}.safetensors"

    def snapshots(self, job: Job) -> Path:
        """The folder of coresets of an unfinished job, for protocols that choose one of them."""
        return self.folder / "snapshots" / job.key

    def log(self, job: Job) -> Path:
        """The log of a method that learns, one line per step."""
        return self.folder / "logs" / f"{job.key}.jsonl"


def run_job(work: Work, job: Job) -> list[Run]:
    """Reduce once, then infer and score once per evaluation. All files are written before it returns."""
    if job.method == CONVERGED:
        runs = [_converged(work, job)]
    elif job.per_class is None:
        runs = _runs(work, job, None, None)
    else:
        runs = _chosen(work, job, _coreset(work, job, job.per_class))
    finish(work.folder, job, runs)
    tidy(work, job)
    return runs


def tidy(work: Work, job: Job) -> None:
    """Remove the checkpoint of a finished job, from which its coreset could be restored until now, and its snapshots.

    A process that was killed after it wrote the result left them.
    """
    work.checkpoint(job).unlink(missing_ok=True)
    if work.snapshots(job).exists():
        rmtree(work.snapshots(job))


def _chosen(work: Work, job: Job, coreset: Coreset) -> list[Run]:
    """The runs of the last coreset, or of the best that was saved on the way where the protocol says so."""
    file = job.coreset
    coreset.save(work.folder / file)
    last, how = _runs(work, job, coreset, file), work.rules.get((job.method, job.per_class))
    if how is None or how.best != "coreset":
        return last
    others, candidates = {}, []
    for name, other in tried(work.snapshots(job), work.split.train.device):
        others[place := f"coresets/{job.key}-{name}.safetensors"] = other
        candidates.append(_runs(work, job, other, place))
    best = the_best([*candidates, last])
    if kept := others.get(str(best[0].coreset)):
        kept.save(work.folder / str(best[0].coreset))
    return [replace(run, reduce_cost=coreset.recipe.cost) for run in best]


def evaluation_seed(seed: int, number: int = 0) -> int:
    """The seed of a posterior, from the seed of its coreset and a count; a hash, so it meets no user's seed."""
    return seed_of("evaluation", seed, number)


def noted(notes: Mapping[str, Any]) -> dict[str, Any]:
    """What a study keeps of a posterior's notes: diagnostics, and labels such as that of a start from experts."""
    kept = ("temperature", "rhat", "ess", "warnings", "label", "sampler", "evaluation")
    return {key: notes[key] for key in kept if notes.get(key)}


def _runs(work: Work, job: Job, coreset: Coreset | None, file: str | None) -> list[Run]:
    how = work.rules.get((job.method, job.per_class))
    count = work.spec.evaluations if how is None else how.evaluations
    return [_evaluated(work, job, coreset, file, number) for number in range(count)]


def _posterior(work: Work, job: Job, coreset: Coreset | None, seed: int) -> Draws:
    """A posterior of the coreset, or of the full data, by the settings of the study or by the protocol's rule."""
    spec, data = work.spec, work.split.train if coreset is None else coreset
    how = work.rules.get((job.method, job.per_class))
    if how is None:
        training = spec.training if coreset is None else coreset.training  # the same, and the learnt step size
        return infer(
            data,
            spec.sampler,
            draws=spec.draws,
            seed=seed,
            network=spec.network,
            training=training,
            options=spec.sampler_options,
        )
    training = how.trained(None if coreset is None else coreset.step_size)
    if how.best == "epoch":
        examples = work.split.train if coreset is None else coreset.data
        net = build_network(spec.network, examples.spec)
        found = best_epoch(examples, net, training, how.draws, seed, work.split.test)
    else:
        found = infer(
            data,
            how.sampler,
            draws=how.draws,
            seed=seed,
            network=spec.network,
            training=training,
            options=how.options,
        )
    label = joined(found.notes.get("label"), how.label)
    return replace(found, notes={**found.notes, "label": label, "evaluation": how.plain()})


def _evaluated(work: Work, job: Job, coreset: Coreset | None, file: str | None, number: int) -> Run:
    split, spec = work.split, work.spec
    with measure() as infer_cost, using(work.accelerate):
        posterior = _posterior(work, job, coreset, evaluation_seed(job.seed, number))
    told, y = probabilities(posterior, split.test), split.test.hard.cpu()
    return Run(
        job.method,
        FULL if coreset is None else registry.find(spec.method(job.method)).family,
        job.per_class,
        job.seed,
        len(split.train) if coreset is None else len(coreset),
        evaluate(posterior, split.val),
        score(told, y),
        Cost() if coreset is None else coreset.recipe.cost,
        infer_cost,
        _curve(work.log(job)),
        file,
        number,
        noted(posterior.notes) | ({} if coreset is None or spec.budget == BALANCED else {"budget": spec.budget}),
        None if number else answers(told, y),
    )


def _converged(work: Work, job: Job) -> Run:
    """The full data trained to convergence; the cost is that of all its networks, whenever they were trained."""
    split, spec = work.split, work.spec
    found = converged(split, build_network(spec.network, split.spec), spec.training, spec.draws, job.seed)
    told, y = probabilities(found.posterior, split.test), split.test.hard.cpu()
    return Run(
        job.method,
        FULL,
        None,
        job.seed,
        len(split.train),
        evaluate(found.posterior, split.val),
        score(told, y),
        Cost(),
        found.cost,
        notes={
            "sampler": "ensemble",
            "steps": found.steps,
            "ladder": [list(rung) for rung in found.rungs],
            "rising": found.rising,
        },
        answers=answers(told, y),
    )


def _coreset(work: Work, job: Job, size: int) -> Coreset:
    """The job's coreset."""
    if job in work.given:
        return work.given[job]
    decided = replace(work.plans[job.method, size], seed=job.seed)
    watching: list[Observer] = [
        partial(log, path=work.log(job)),
        partial(film, path=work.folder / "films" / f"{job.key}.safetensors"),
    ]
    how = work.rules.get((job.method, size))
    if how is not None and how.best == "coreset":
        if not all(map(intact, saved(work.snapshots(job)))) and work.checkpoint(job).exists():
            later = DamagedFile(work.checkpoint(job), "is of a later step than a damaged snapshot", "start anew.")
            set_aside(later, "the run starts anew")
        watching.append(partial(snapshots, recipe=decided.recipe(), folder=work.snapshots(job)))
    observers = [*watching, *work.observers]
    return reduced(decided, observers, work.checkpoint(job), work.checkpoint_every)


def _curve(path: Path) -> list[tuple[int, float]]:
    if not path.exists():
        return []
    lines = [json.loads(line) for line in read_bytes(path, budget.PARSED).decode().splitlines()]
    thin = max(1, len(lines) // CURVE)
    return [(line["step"], line["loss"]) for line in lines[::thin]]
