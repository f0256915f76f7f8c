"""The honest protocol: methods × sizes × seeds on one data set, one network and one training budget."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attar.assess.score import evaluate, made_from
from attar.condense.observers import Observer, film, log
from attar.core import registry
from attar.core.cost import Cost, measure
from attar.coreset import Coreset
from attar.data import Split
from attar.engine import run_all
from attar.engine.pool import Where
from attar.infer import infer
from attar.infer.separate import require_separate
from attar.nets import default
from attar.nets import network as build_network
from attar.nets.train import Training
from attar.plan import Plan, needs_experts, plan
from attar.reduce import run
from attar.study.folder import Job, finish, finished, in_order, settle
from attar.study.results import Run, Study, versions
from attar.study.setting import BASELINES, Setting, grid

__all__ = ["BASELINES", "Job", "Setting", "carry_out", "compare", "grid", "judge", "run_job"]

EVALUATION_SEED = 10_000  # apart from any coreset seed in use
CURVE = 200  # points of a learning curve that a study keeps
OWN = ("options", "descent", "variants")  # what of the settings belongs to one method alone


def compare(
    split: Split,
    methods: Sequence[str],
    per_class: Sequence[int],
    *,
    folder: str | Path,
    seeds: Sequence[int] = (0, 1, 2),
    network: str | None = None,
    training: Training | None = None,
    draws: int = 3,
    sampler: str | None = None,
    sampler_options: Mapping[str, Any] | None = None,
    evaluations: int = 1,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    descent: Mapping[str, Mapping[str, Any]] | None = None,
    variants: Mapping[str, str] | None = None,
    experts: str | Path | None = None,
    baselines: bool = True,
    workers: int = 1,
    where: Where = "local",
    command: str = "attar.study.runner.compare(...)",
    watch: Callable[[Job, list[Run]], None] | None = None,
) -> Study:
    """Run a grid and write ``study.json`` into ``folder``; what an earlier call finished is not run again.

    The study is of all that the folder holds: give the same one with other seeds, sizes or methods, and it grows.

    Args:
        split: Choices look at ``val``; ``test`` is read once for each run.
        methods: Registered names, or names of ``variants``.
        per_class: Sizes.
        folder: Where everything goes; give the same one to resume or to grow.
        seeds: One coreset for each.
        network: The network of all runs, by name; by the data's shape if not set.
        training: The training budget of all runs, the full data's too.
        draws: Networks whose predictions are averaged.
        sampler: How posteriors are inferred, the full data's too; if not set, as each method means it, which is an
            ensemble for most.
        sampler_options: Its hyper-parameters.
        evaluations: Posteriors for each coreset, each from its own seed.
        options: Hyper-parameters by method name.
        descent: What to change of a method's way down, by method name.
        variants: Names of your own for methods with other options: ``{"cd-short": "bpc-cd"}`` with
            ``options={"cd-short": {"k": 10}}``.
        experts: Folder of experts, for methods that need them; those made before for this network if not set.
        baselines: Whether to add a random subset, herding and the full data.
        workers: How many runs at once.
        where: ``local`` or ``ray``.
        command: What the study says repeats it.
        watch: Called with every run of this grid that is there, also with those of an earlier call.
    """
    net, budget = network or default(split.spec), training or Training()
    setting = Setting(
        split,
        Path(folder),
        net,
        budget,
        draws,
        sampler,
        sampler_options or {},
        evaluations,
        options or {},
        descent or {},
        variants or {},
        str(experts) if experts else None,
    )
    jobs = grid(methods, per_class, seeds, baselines, setting.variants)
    return carry_out(setting, jobs, command, workers, where, watch)


def judge(
    split: Split,
    coreset: str | Path,
    *,
    folder: str | Path,
    evaluations: int = 3,
    draws: int = 3,
    command: str = "attar.study.runner.judge(...)",
    watch: Callable[[Job, list[Run]], None] | None = None,
) -> Study:
    """Evaluate a coreset made before, beside baselines of its size and seed, with its own network and budget."""
    recipe = Coreset.load(coreset).recipe
    made_from(Coreset.load(coreset), split)
    registry.find(recipe.method, *registry.REDUCERS)  # text from a file names files only if it names a method
    given = Job(recipe.method, recipe.per_class, recipe.seed, str(coreset))
    jobs = [given, *(job for job in grid([], [recipe.per_class], [recipe.seed]) if job.method != recipe.method)]
    setting = Setting(split, Path(folder), recipe.network, recipe.training, draws, evaluations=evaluations)
    return carry_out(setting, jobs, command, watch=watch)


def carry_out(
    setting: Setting,
    jobs: Sequence[Job],
    command: str,
    workers: int = 1,
    where: Where = "local",
    watch: Callable[[Job, list[Run]], None] | None = None,
) -> Study:
    """Run the jobs that have no result yet, and write the study of all that the folder holds.

    A folder is one study: what earlier calls finished with the same settings, other seeds say, stays in it.
    """
    split, folder = setting.split, setting.folder
    about = {
        "name": split.spec.name,
        "classes": list(split.spec.target.names),
        "shape": list(split.shape),
        "fingerprint": split.train.fingerprint,
        "held_out": [split.val.fingerprint, split.test.fingerprint],
        "train": len(split.train),
        "val": len(split.val),
        "test": len(split.test),
    }
    _check(setting, jobs)
    done = finished(folder)
    missing = [job for job in jobs if job.key not in done]
    shared = {name: value for name, value in setting.config().items() if name not in OWN}
    own = {job.method: _own(setting, job) for job in jobs}
    shared |= {"data": about, "attar": versions()["attar"]}
    settled = settle(folder, shared, own, command if missing else None)
    for job in jobs:
        if watch and job.key in done:
            watch(job, done[job.key])
    for job, result in run_all(run_job, setting, missing, workers=workers, where=where):
        done[job.key] = result
        if watch:
            watch(job, result)
    config = setting.config() | {
        kind: {name: values[kind] for name, values in settled.methods.items() if values.get(kind)} for kind in OWN
    }
    study = Study(" && ".join(settled.commands) or command, config, about, in_order(done, jobs))
    study.save(folder / "study.json")
    return study


def run_job(setting: Setting, job: Job) -> list[Run]:
    """One cell: reduce once; infer and score as often as asked. Its files are written before it returns."""
    coreset, file = (None, None) if job.per_class is None else _coreset(setting, job)
    runs = [_evaluated(setting, job, coreset, file, number) for number in range(setting.evaluations)]
    finish(setting.folder, job, runs)
    _checkpoint(setting, job).unlink(missing_ok=True)  # until now it could give the coreset again at once
    return runs


def _evaluated(setting: Setting, job: Job, coreset: Coreset | None, file: str | None, number: int) -> Run:
    split = setting.split
    with measure() as infer_cost:
        posterior = infer(
            split.train if coreset is None else coreset,
            setting.sampler,
            draws=setting.draws,
            seed=job.seed + EVALUATION_SEED * number,
            network=setting.network,
            training=setting.training if coreset is None else coreset.training,  # the same budget, and what was learnt
            options=setting.sampler_options,
        )
    return Run(
        job.method,
        "full" if coreset is None else registry.find(setting.method(job.method)).family,
        job.per_class,
        job.seed,
        len(split.train) if coreset is None else len(coreset),
        evaluate(posterior, split.val),
        evaluate(posterior, split.test),
        Cost() if coreset is None else coreset.recipe.cost,
        infer_cost,
        _curve(setting.folder / "logs" / f"{job.key}.jsonl"),
        file,
        number,
        noted(posterior.notes),
    )


def noted(notes: Mapping[str, Any]) -> dict[str, Any]:
    """What a study keeps of a posterior's notes: how it mixed, and the label of one that saw the full data."""
    kept = ("rhat", "ess", "warnings", "label", "sampler")
    return {key: notes[key] for key in kept if notes.get(key)}


def _coreset(setting: Setting, job: Job) -> tuple[Coreset, str]:
    """The job's coreset, and its file relative to the study's folder."""
    name = f"coresets/{job.key}.safetensors"
    path = setting.folder / name
    if job.coreset is not None:
        coreset = Coreset.load(job.coreset)
        coreset.save(path)
        return coreset, name
    watching: list[Observer] = [
        partial(log, path=setting.folder / "logs" / f"{job.key}.jsonl"),
        partial(film, path=setting.folder / "films" / f"{job.key}.safetensors"),
    ]
    coreset = run(_plan(setting, job), [*watching, *setting.observers], _checkpoint(setting, job))
    coreset.save(path)
    return coreset, name


def _plan(setting: Setting, job: Job) -> Plan:
    assert job.per_class is not None
    method = setting.method(job.method)
    return plan(
        setting.split,
        method,
        per_class=job.per_class,
        seed=job.seed,
        network=setting.network,
        options=setting.options.get(job.method),
        descent=setting.descent.get(job.method),
        training=setting.training,
        experts=setting.experts if needs_experts(method) else None,
    )


def _checkpoint(setting: Setting, job: Job) -> Path:
    return setting.folder / "checkpoints" / f"{job.key}.safetensors"


def _check(setting: Setting, jobs: Sequence[Job]) -> None:
    """Find every name and range error before anything is written."""
    if setting.sampler is not None:
        registry.build(setting.sampler, setting.sampler_options, "infer")
    require_separate(build_network(setting.network, setting.split.spec))
    for method, size in dict.fromkeys((job.method, job.per_class) for job in jobs if not job.coreset):
        if size is not None:
            _plan(setting, Job(method, size, 0))


def _own(setting: Setting, job: Job) -> dict[str, Any]:
    """What decides the numbers of one method alone."""
    made = {"coreset": Coreset.load(job.coreset).data.fingerprint} if job.coreset else {}
    config = setting.config()
    return {kind: config[kind][job.method] for kind in OWN if job.method in config[kind]} | made


def _curve(path: Path) -> list[tuple[int, float]]:
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    thin = max(1, len(lines) // CURVE)
    return [(line["step"], line["loss"]) for line in lines[::thin]]
