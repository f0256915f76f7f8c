"""The command that trains experts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Annotated, Literal

import typer

from attar.cli.arguments import NetworkName, Scaling, Seed, Source, Target, read
from attar.cli.console import bar, err, out
from attar.cli.options import Chosen
from attar.core import registry
from attar.data import Split
from attar.experts import SMALL, Manifest, Progress, Schedule, Trajectories
from attar.experts import experts as train_experts
from attar.experts.progress import cores, duration, estimate
from attar.nets import Network, default
from attar.nets import network as build_network
from attar.nets.train import Training


def experts(
    data: Source,
    network: NetworkName = None,
    trajectories: Annotated[
        int, typer.Option("--trajectories", "-n", min=1, help="Networks, each from its own initialisation.")
    ] = SMALL.trajectories,
    epochs: Annotated[int, typer.Option("--epochs", "-e", min=1, help="Passes through the data.")] = SMALL.epochs,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for them.", show_default="$ATTAR_EXPERTS or ~/.cache/attar/experts"
        ),
    ] = None,
    dtype: Annotated[
        Literal["float32", "float16"], typer.Option(help="How vectors are stored; float16 halves the disk.")
    ] = "float32",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that train at once.", show_default="one a core")
    ] = None,
    seed: Seed = 0,
    scaling: Scaling = "standard",
    target: Target = None,
    *,
    chosen: Chosen,
) -> None:
    """Train networks on the full data and keep their parameters after every epoch, for methods that learn from them.

    What was trained before is found again, so the same command never trains twice, and more trajectories only add
    those that are missing. After Ctrl-C or a crash the same command goes on from the last finished epoch.

    The defaults fit two cores; as published: `--trajectories 100 --epochs 50 --momentum 0`.
    """
    split = read(data, scaling, target)
    net = build_network(network or default(split.spec), split.spec)
    training: Training = registry.make(Training, asdict(SMALL.training) | chosen.training, "training")
    processes = min(workers or cores(), trajectories)
    schedule = Schedule(trajectories, epochs, training, dtype, seed)
    wanted = Manifest.of(schedule, split.train, net)
    trained: list[Progress] = []
    with bar() as shown:
        task = shown.add_task("epochs", total=trajectories * epochs)

        def watch(progress: Progress) -> None:
            if not trained:
                _announce(split, net, wanted, progress, processes)
            trained.append(progress)
            left = "" if progress.left is None else f"about {duration(progress.left)} left"
            shown.update(task, completed=progress.done, total=progress.total, note=left)

        store = train_experts(split, net, schedule, folder=output, workers=processes, watch=watch)
    _tell(store, bool(trained))


def _announce(split: Split, network: Network, wanted: Manifest, progress: Progress, workers: int) -> None:
    share = (progress.total - progress.done) / wanted.epochs / workers
    left = duration(share * estimate(split.train, network, wanted.training))
    epochs = f"{progress.total - progress.done:,} of {progress.total:,} epochs"
    about = f"{epochs} of {network.name} ({network.size:,} parameters) to train, {workers} at once: about {left}"
    err.print(about, soft_wrap=True)


def _tell(store: Trajectories, trained: bool) -> None:
    experts = store.manifest.experts
    scores = [expert.accuracy for expert in experts if expert.accuracy is not None]
    accuracy = f", validation accuracy {100 * mean(scores):.1f} %" if scores else ""
    spent = duration(sum(expert.cost.cpu for expert in experts))
    about = f"{len(store)} trajectories × {store.epochs} epochs of {store.manifest.network}{accuracy}"
    out.print(f"{about}, {spent} of processor{'' if trained else ', trained before'} → {store.folder}", soft_wrap=True)
