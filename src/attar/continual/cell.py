"""One run: a method with a seed through all stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, cast

import torch
from torch import Tensor

from attar.assess.score import predictions
from attar.condense.contract import Condenser
from attar.condense.observers import Observer, log
from attar.continual.finetune import Distilled, finetuned, narrowed, widened
from attar.continual.memory import joined, united
from attar.continual.results import Episode
from attar.continual.spec import ContinualSpec
from attar.core import registry
from attar.core.aside import read_cost, write_cost
from attar.core.cost import Cost, measure
from attar.core.streams import evaluation, reduction, seed_of
from attar.coreset import Coreset
from attar.data import Data, Spec, Split
from attar.infer import Draws, infer
from attar.infer.diagnose import together
from attar.nets import Network, network
from attar.plan import Plan, Reducer, needs_of, plan
from attar.study.cells import intact, readable, reduced
from attar.study.grid import Seeded
from attar.study.results import CHAINS
from attar.study.spec import FULL


@dataclass(frozen=True)
class Work:
    """What every run needs; each worker gets it once."""

    spec: ContinualSpec  #: with the name of its network filled in
    stages: Sequence[Split]
    folder: Path
    observers: Sequence[Observer] = ()
    checkpoint_every: float | None = None  #: seconds, as for ``reduce``

    def experts(self, stage: int) -> Path:
        """The folder of a stage's experts, for methods that need them."""
        return self.folder / "experts" / f"stage-{stage + 1}"

    def file(self, kind: str, job: Seeded, stage: int) -> Path:
        """What a run keeps of a stage, so that a killed run goes on from there."""
        return self.folder / kind / f"{job.key}-{stage + 1}.safetensors"


def run_job(work: Work, job: Seeded) -> Episode:
    """Learn stage after stage: fill the memory, train, and score on the data of all stages so far.

    New networks are trained on the memory alone, so it is filled first. Networks that are fine-tuned see the new data
    itself, so they are trained first, and methods with ``needs.phase`` learn from them.
    """
    parts: list[Coreset | Data] = []
    reduced, trained = list[Cost](), list[Cost]()
    validation, test = list[list[float]](), list[list[float]]()
    balanced, worst, notes = list[float](), list[float](), list[Mapping[str, Any]]()
    sizes: list[int] = []
    posterior: Draws | None = None
    for stage in range(len(work.stages)):
        if work.spec.regime == "finetune":
            posterior, spent = _trained(work, job, stage, parts, posterior)
            parts, cost = _remembered(work, job, stage, parts, posterior)
        else:
            parts, cost = _remembered(work, job, stage, parts, None)
            posterior, spent = _trained(work, job, stage, parts, posterior)
        reduced.append(cost)
        trained.append(spent)
        sizes.append(sum(map(len, parts)))
        validation.append([_accuracy(posterior, split.val) for split in work.stages[: stage + 1]])
        told = [_answers(posterior, split.test) for split in work.stages[: stage + 1]]
        test.append([float(right.double().mean()) for _, right in told])
        recalls = _recalls(told)
        balanced.append(mean(recalls))
        worst.append(min(recalls))
        notes.append(posterior.notes)
    family = FULL if job.method == FULL else registry.find(work.spec.study.method(job.method)).family
    scores = validation, test, sizes, reduced, trained, balanced, worst, together(notes)
    return Episode(job.method, family, job.seed, *scores)


def has_coresets(work: Work, job: Seeded) -> bool:
    """Whether the coresets of all stages of a finished run can be read."""
    return job.method == FULL or all(intact(work.file("coresets", job, stage)) for stage in range(len(work.stages)))


def planned(work: Work, method: str, stage: int, seed: int) -> Plan:
    """The reduction of one stage's data."""
    spec, name = work.spec, work.spec.study.method(method)
    return plan(
        work.stages[stage],
        name,
        per_class=spec.per_class,
        seed=seed,
        network=spec.network,
        options=spec.options.get(method),
        descent=spec.descent.get(method),
        training=spec.training,
        experts=work.experts(stage) if needs_of(name).experts else None,
    )


def _remembered(
    work: Work, job: Seeded, stage: int, parts: Sequence[Coreset | Data], posterior: Draws | None
) -> tuple[list[Coreset | Data], Cost]:
    """The memory with what it keeps of a stage, and what that cost.

    Args:
        work: What every run needs.
        job: The run.
        stage: The new stage.
        parts: The memory before it.
        posterior: The networks of the stage, if they are trained already.
    """
    if job.method == FULL:
        return [*parts, work.stages[stage].train], Cost()
    decided = planned(work, job.method, stage, seed_of("memory", job.seed, stage))
    if posterior is None or not decided.method.needs.phase:
        new = _filled(work, job, stage, decided)
        return [*parts, new], new.recipe.cost
    new = _filled(work, job, stage, replace(decided, theta=_cut(posterior, decided.network, decided.data.spec)))
    if not parts:
        return [new], new.recipe.cost
    old = _adjusted(work, job, stage, [part for part in parts if isinstance(part, Coreset)], decided.method, posterior)
    return [old, new], old.recipe.cost + new.recipe.cost


def _filled(work: Work, job: Seeded, stage: int, decided: Plan) -> Coreset:
    """The coreset of a stage; a file of it is read instead, if there is one."""
    path, checkpoint = work.file("coresets", job, stage), work.file("checkpoints", job, stage)
    if not intact(path):
        logged: Observer = partial(log, path=work.file("logs", job, stage).with_suffix(".jsonl"))
        reduced(decided, [logged, *work.observers], checkpoint, work.checkpoint_every).save(path)
    checkpoint.unlink(missing_ok=True)  # also if a process was killed after it wrote the coreset
    return Coreset.load(path, force=True).to(decided.data.device)


def _adjusted(
    work: Work, job: Seeded, stage: int, parts: Sequence[Coreset], method: Reducer, posterior: Draws
) -> Coreset:
    """The memory of earlier stages, fitted to the networks of this one; its recipe has the cost of that alone."""
    path, device = work.file("memory", job, stage), posterior.theta.device
    if not intact(path):
        memory, gen = joined(parts), reduction(seed_of("adjust", job.seed, stage), device)
        few = network(work.spec.network, memory.data.spec)
        with measure() as cost:
            data = cast(Condenser, method).adjust(memory.data, few, _cut(posterior, few, memory.data.spec), gen)
        replace(memory, data=data, recipe=replace(memory.recipe, cost=cost)).save(path)
    return Coreset.load(path, force=True).to(device)


def _cut(posterior: Draws, few: Network, spec: Spec) -> Tensor:
    """The networks of a posterior, ``(draws, p)``, with outputs for the classes of ``spec`` alone."""
    return narrowed(posterior.network, posterior.theta, few, posterior.spec.target.places(spec.target.names))


def _trained(
    work: Work, job: Seeded, stage: int, parts: Sequence[Coreset | Data], last: Draws | None
) -> tuple[Draws, Cost]:
    """The posterior after a stage and what it cost; a file of it is read instead, if there is one."""
    path, seed = work.file("networks", job, stage), seed_of("stage", job.seed, stage)
    if not readable(path, Draws.load):
        with measure() as cost:
            if work.spec.regime == "finetune":
                found = _tuned(work, parts, work.stages[stage].train, last, seed)
            else:
                found = _new(work, parts, seed)
        write_cost(path, str(seed), cost)
        replace(found, notes={name: found.notes[name] for name in CHAINS if name in found.notes}).save(path)
    return Draws.load(path).to(work.stages[0].train.device), read_cost(path, str(seed)) or Cost()


def _new(work: Work, parts: Sequence[Coreset | Data], seed: int) -> Draws:
    """New networks trained on the memory alone."""
    spec = work.spec
    coresets = [part for part in parts if isinstance(part, Coreset)]
    memory = joined(coresets) if coresets else united(parts, None, spec.training.loss)
    return infer(
        memory,
        spec.sampler,
        draws=spec.draws,
        seed=seed,
        network=spec.network,
        training=memory.training if isinstance(memory, Coreset) else spec.training,
        options=spec.sampler_options,
    )


def _tuned(work: Work, parts: Sequence[Coreset | Data], new: Data, last: Draws | None, seed: int) -> Draws:
    """The networks of the last stage, with outputs for new classes, trained on the memory and the new data."""
    spec = work.spec
    if last is None:
        return infer(new, "ensemble", draws=spec.draws, seed=seed, network=spec.network, training=spec.training)
    data = united(parts, new, spec.training.loss)
    wide, gen = network(spec.network, data.spec), evaluation(seed, data.device, "fine-tuning")
    settings = spec.distillation, spec.distillation_temperature, spec.training.loss, spec.distillation_kind
    theta = []
    for old in last.theta:
        objective = Distilled(wide, last.network, old, *settings)
        theta.append(finetuned(objective, data, spec.training, widened(last.network, old, wide, gen), gen))
    return Draws(wide, torch.stack(theta), data.spec)


def _accuracy(posterior: Draws, data: Data) -> float:
    """Accuracy on one stage's data, among all classes so far."""
    return float(_answers(posterior, data)[1].double().mean())


def _answers(posterior: Draws, data: Data) -> tuple[Tensor, Tensor]:
    """The place of every example's class among all classes so far, and whether it was predicted."""
    labels = posterior.spec.target.places(data.spec.target.names)[data.hard.cpu()]
    return labels, predictions(posterior, data).argmax(1) == labels


def _recalls(told: Sequence[tuple[Tensor, Tensor]]) -> list[float]:
    """The share of right answers of every class with examples."""
    labels, right = (torch.cat(parts) for parts in zip(*told, strict=True))
    return [float(right[labels == place].double().mean()) for place in labels.unique()]
