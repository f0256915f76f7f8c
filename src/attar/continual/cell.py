"""One run: a method with a seed through all stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path

import torch

from attar.assess.score import predictions
from attar.condense.observers import Observer, log
from attar.continual.finetune import Distilled, finetuned, widened
from attar.continual.memory import joined, united
from attar.continual.results import Episode
from attar.continual.spec import ContinualSpec
from attar.core import registry
from attar.core.cost import Cost, measure
from attar.core.streams import seed_of
from attar.coreset import Coreset
from attar.data import Data, Split
from attar.infer import Draws, infer
from attar.nets import network
from attar.plan import Plan, needs_experts, plan
from attar.reduce import run
from attar.study.spec import FULL


@dataclass(frozen=True)
class Job:
    """One cell of the grid."""

    method: str
    seed: int

    @property
    def key(self) -> str:
        """A name that is unique in the grid and safe as a file name."""
        return f"{self.method}-{self.seed}"


@dataclass(frozen=True)
class Work:
    """What every run needs; each worker gets it once."""

    spec: ContinualSpec  #: with the name of its network filled in
    stages: Sequence[Split]
    folder: Path
    observers: Sequence[Observer] = ()

    def experts(self, stage: int) -> Path:
        """The folder of a stage's experts, for methods that need them."""
        return self.folder / "experts" / f"stage-{stage + 1}"

    def file(self, kind: str, job: Job, stage: int) -> Path:
        """What a run keeps of a stage, so that a killed run goes on from there."""
        return self.folder / kind / f"{job.key}-{stage + 1}.safetensors"


def run_job(work: Work, job: Job) -> Episode:
    """Learn stage after stage: fill the memory, train, and score on the data of all stages so far."""
    parts: list[Coreset | Data] = []
    costs: list[tuple[Cost, Cost]] = []
    validation, test = list[list[float]](), list[list[float]]()
    posterior: Draws | None = None
    for stage in range(len(work.stages)):
        parts.append(_filled(work, job, stage))
        posterior = _trained(work, job, parts, posterior)
        part, seen = parts[-1], work.stages[: stage + 1]
        costs.append((part.recipe.cost if isinstance(part, Coreset) else Cost(), Cost(**posterior.notes["cost"])))
        validation.append([_accuracy(posterior, split.val) for split in seen])
        test.append([_accuracy(posterior, split.test) for split in seen])
    family = FULL if job.method == FULL else registry.find(work.spec.study.method(job.method)).family
    sizes = list(accumulate(map(len, parts)))
    reduced, trained = (list(column) for column in zip(*costs, strict=True))
    return Episode(job.method, family, job.seed, validation, test, sizes, reduced, trained)


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
        experts=work.experts(stage) if needs_experts(name) else None,
    )


def _filled(work: Work, job: Job, stage: int) -> Coreset | Data:
    """What the memory keeps of a stage: its coreset, or all its data for the method ``full``."""
    train = work.stages[stage].train
    if job.method == FULL:
        return train
    path, checkpoint = work.file("coresets", job, stage), work.file("checkpoints", job, stage)
    if not path.exists():
        logged: Observer = partial(log, path=work.file("logs", job, stage).with_suffix(".jsonl"))
        made = run(
            planned(work, job.method, stage, seed_of("memory", job.seed, stage)), [logged, *work.observers], checkpoint
        )
        made.save(path)
        checkpoint.unlink(missing_ok=True)
    return Coreset.load(path).to(train.device)


def _trained(work: Work, job: Job, parts: Sequence[Coreset | Data], last: Draws | None) -> Draws:
    """The posterior after the stage of the last part; a file of it is read instead, if there is one."""
    stage = len(parts) - 1
    path, seed = work.file("networks", job, stage), seed_of("stage", job.seed, stage)
    if not path.exists():
        train = _tuned if work.spec.regime == "finetune" else _new
        with measure() as cost:
            found = train(work, parts, last, seed)
        replace(found, notes={"cost": asdict(cost)}).save(path)
    return Draws.load(path).to(work.stages[0].train.device)


def _new(work: Work, parts: Sequence[Coreset | Data], last: Draws | None, seed: int) -> Draws:
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


def _tuned(work: Work, parts: Sequence[Coreset | Data], last: Draws | None, seed: int) -> Draws:
    """The networks of the last stage, with outputs for new classes, trained on the memory and the new data."""
    spec, new = work.spec, work.stages[len(parts) - 1].train
    if last is None:
        return infer(new, "ensemble", draws=spec.draws, seed=seed, network=spec.network, training=spec.training)
    data = united(parts[:-1], new, spec.training.loss)
    wide, gen = network(spec.network, data.spec), torch.Generator(data.device).manual_seed(seed)
    settings = spec.distillation, spec.distillation_temperature, spec.training.loss
    theta = []
    for old in last.theta:
        objective = Distilled(wide, last.network, old, *settings)
        theta.append(finetuned(objective, data, spec.training, widened(last.network, old, wide, gen), gen))
    return Draws(wide, torch.stack(theta), data.spec)


def _accuracy(posterior: Draws, data: Data) -> float:
    """Accuracy on one stage's data, among all classes so far."""
    places = posterior.spec.target.places(data.spec.target.names)
    return float((predictions(posterior, data).argmax(1) == places[data.hard.cpu()]).double().mean())
