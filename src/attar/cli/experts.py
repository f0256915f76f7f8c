"""`attar experts`: networks trained on the full data, for methods that learn from them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer
from rich.progress import TaskID

from attar.cli.arguments import (
    Accelerated,
    Device,
    NetworkName,
    Seed,
    Source,
)
from attar.cli.console import Shown, bar, err, out, warnings_shown
from attar.cli.fields import flag_of
from attar.cli.loading import USUAL, Loading
from attar.cli.options import Chosen
from attar.core import registry
from attar.core.text import duration
from attar.data import Split
from attar.engine.pool import LOCAL, Engine
from attar.experts import SMALL, Manifest, Progress, Schedule, Trajectories
from attar.experts import experts as train_experts
from attar.experts.progress import estimate
from attar.nets import Network
from attar.nets import network as build_network
from attar.nets.train import Training

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FOLDER",
        help="Folder for the networks.",
        show_default="one in $ATTAR_EXPERTS, or in ~/.cache/attar/experts",
    ),
]
CheckpointEvery = Annotated[
    float | None,
    typer.Option(
        "--checkpoint-every",
        min=0,
        metavar="SECONDS",
        help="Time between checkpoints, from which interrupted training resumes.",
        show_default="30 seconds, or an epoch if that is sooner",
    ),
]


def _flag(name: str, *flags: str) -> Any:
    return flag_of(Schedule, (), name, *flags)


def experts(
    data: Source,
    network: NetworkName = None,
    trajectories: Annotated[int | None, _flag("trajectories", "--trajectories", "-n")] = None,
    epochs: Annotated[int | None, _flag("epochs", "--epochs", "-e")] = None,
    every: Annotated[int | None, _flag("every")] = None,
    output: Output = None,
    dtype: Annotated[str | None, _flag("dtype")] = None,
    engine: Engine = LOCAL,
    seed: Seed = 0,
    device: Device = "cpu",
    accelerate: Accelerated = "none",
    checkpoint_every: CheckpointEvery = None,
    loading: Loading = USUAL,
    *,
    chosen: Chosen,
) -> None:
    """Train networks on the full data, for methods that learn from them.

    Their parameters are kept after each epoch, and at ten times within the first. The methods mtt, bpc-cd,
    bpc-fkl and bpc-w find them automatically:

        attar experts digits
        attar reduce digits --method mtt --per-class 1

    Nothing is trained twice: existing networks are reused, and more trajectories train only the missing ones. Ctrl-C
    saves what is under way; after that or a crash, the same command resumes. The defaults suit two cores; for the
    published setting use `--trajectories 100 --epochs 50 --momentum 0 --every 0 --augment
    color-crop-cutout-flip-scale-rotate`.
    """
    split = loading.read(data, device)
    net = build_network(network, split.spec)
    training: Training = registry.make(Training, asdict(SMALL.training) | chosen.training, "training")
    given = {"trajectories": trajectories, "epochs": epochs, "every": every, "dtype": dtype, "seed": seed}
    asked = {name: value for name, value in given.items() if value is not None} | {"training": training}
    schedule: Schedule = registry.make(Schedule, asked, "experts")
    engine = engine.at_most(schedule.trajectories)
    with bar() as shown, warnings_shown():
        watch = _Watch(shown, split, net, Manifest.of(schedule, split.train, net), engine.workers)
        store = train_experts(
            split,
            net,
            schedule,
            folder=output,
            engine=engine,
            accelerate=accelerate,
            checkpoint_every=checkpoint_every,
            watch=watch,
        )
    _tell(store, trained=watch.task is not None)


class _Watch:
    """Announces the work and its time before the first epoch, then shows progress."""

    def __init__(self, shown: Shown, split: Split, network: Network, wanted: Manifest, workers: int) -> None:
        self.shown, self.split, self.network, self.wanted, self.workers = shown, split, network, wanted, workers
        self.task: TaskID | None = None

    def __call__(self, progress: Progress) -> None:
        if self.task is None:
            self._announce(progress)
            self.task = self.shown.add_task("training", total=progress.total, unit="epochs")
        self.shown.update(self.task, completed=progress.done)

    def _announce(self, progress: Progress) -> None:
        share = (progress.total - progress.done) / self.wanted.epochs / self.workers
        left = duration(share * estimate(self.split.train, self.network, self.wanted.training))
        epochs = f"{progress.total - progress.done:,} of {progress.total:,} epochs"
        size = f"{self.network.name} ({self.network.size:,} parameters)"
        err.print(f"{epochs} of {size} to train, {self.workers} at once: about {left}", soft_wrap=True)


def _tell(store: Trajectories, trained: bool) -> None:
    experts = store.manifest.experts
    scores = [expert.accuracy for expert in experts if expert.accuracy is not None]
    accuracy = f", validation accuracy {100 * mean(scores):.1f} %" if scores else ""
    spent = duration(sum(expert.cost.cpu for expert in experts))
    about = f"{len(store)} trajectories × {store.epochs} epochs of {store.manifest.network}{accuracy}"
    out.print(
        f"{about}, {spent} of processor time{'' if trained else ', trained before'} → {store.folder}", soft_wrap=True
    )
