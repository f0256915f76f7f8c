"""Choices that the test set makes in some public code: the best epoch of a network, the best coreset of a run.

Nothing here is used by the protocol ``honest``; every score that was made with it has a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

import torch

from attar.assess.score import evaluate
from attar.condense.driver import Step
from attar.core import streams
from attar.coreset import Coreset
from attar.data import Data
from attar.infer import Draws
from attar.infer.separate import require_separate
from attar.nets import Network
from attar.nets.train import Trainer, Training
from attar.recipe import Recipe
from attar.reduce import finished
from attar.study.protocol import EVERY, steps_of_epoch
from attar.study.results import Run

CHOSEN = "by test accuracy, as published"


def best_epoch(data: Data, network: Network, training: Training, draws: int, seed: int, test: Data) -> Draws:
    """Networks trained on ``data``, as they were after the epoch with the highest accuracy on ``test``."""
    require_separate(network)
    gen = streams.evaluation(seed, data.device)
    trainer = Trainer(network, data, training, torch.stack([network.init(gen) for _ in range(draws)]))
    each, count = steps_of_epoch(len(data), training.batch), 0
    best, highest = trainer.theta, -1.0
    for number in range(1, training.steps + 1):
        trainer.step(gen)
        if number % each == 0 or number == training.steps:
            count += 1
            accuracy = evaluate(Draws(network, trainer.theta, data.spec), test).accuracy
            if accuracy > highest:
                best, highest = trainer.theta, accuracy
    notes = {"sampler": "ensemble", "seed": seed, "start": "prior", "label": f"best of {count} epochs {CHOSEN}"}
    return Draws(network, best, data.spec, notes)


def snapshots(steps: Iterable[Step], recipe: Recipe, folder: Path, every: int = EVERY) -> Iterator[Step]:
    """An observer that saves the coreset as it is every ``every`` steps, before the last one."""
    for step in steps:
        if step.number % every == 0 and step.number < step.total:
            now = replace(recipe, descent={**recipe.descent, "steps": step.number})
            finished(step.run, now).save(snapshot(folder, step.number))
        yield step


def snapshot(folder: Path, number: int) -> Path:
    """The file of the coreset after this number of steps."""
    return folder / f"step{number}.safetensors"


def saved(folder: Path) -> list[Path]:
    """The files that ``snapshots`` wrote, from the first to the last."""
    return sorted(folder.glob("step*.safetensors"), key=lambda path: int(path.stem.removeprefix("step")))


def tried(folder: Path, device: torch.device) -> Iterator[tuple[str, Coreset]]:
    """The coresets that ``snapshots`` saved, by name, from the first to the last."""
    for path in saved(folder):
        yield path.stem, Coreset.load(path, force=True).to(device)


def the_best(candidates: Sequence[list[Run]]) -> list[Run]:
    """The runs of the coreset with the highest mean test accuracy, with a label; of equals, the first."""
    chosen = max(candidates, key=lambda runs: mean(run.test.accuracy for run in runs))
    said = f"best of {len(candidates)} coresets {CHOSEN}"
    return [replace(run, notes={**run.notes, "label": joined(said, run.notes.get("label"))}) for run in chosen]


def joined(*labels: str | None) -> str:
    """Labels as one text; empty ones are left out."""
    return "; ".join(label for label in labels if label)
