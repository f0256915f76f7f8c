"""Train one trajectory, and save it on the way, to resume from there."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attar.core.cost import Cost, measure
from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import open_tensors, parsed, read_tensors, set_aside, write_tensors
from attar.core.signals import Held, held
from attar.core.streams import EVALUATION, seed_of
from attar.data import Data
from attar.experts.manifest import DTYPES, Expert, Manifest
from attar.experts.store import write_expert
from attar.nets import Network, in_parts
from attar.nets.fast.modes import using
from attar.nets.train import Trainer

JUDGED = 2048  #: validation examples at most, to keep the score cheap
SECONDS = 30.0  #: between two checkpoints of an epoch that takes longer, unless said otherwise


class Work(NamedTuple):
    """What all trajectories of one store share."""

    data: Data
    val: Data | None
    network: Network
    manifest: Manifest
    folder: Path
    checkpoint_every: float | None = None  #: seconds; None for every epoch, and within long ones


def checkpoint(folder: Path, index: int) -> Path:
    """The checkpoint file of an unfinished trajectory."""
    return folder / f"trajectory-{index:04d}.checkpoint"


def grow(work: Work, index: int) -> Expert:
    """Train one trajectory, resuming from its checkpoint, and write its file.

    Every epoch visits the examples in a new random order; an incomplete last batch is dropped.
    """
    path, epochs = checkpoint(work.folder, index), work.manifest.epochs
    run = _begin(work, index, path)
    with held() as stop, using(work.manifest.accelerate):
        while run.epoch < epochs:
            run.advance(stop)
            run.save(path)
            stop.act(f"Stopped after {run.epoch} of {epochs} epochs; saved to {path}.")
    expert = Expert(_seed(work, index), run.loss, run.accuracy(), run.cost)
    write_expert(work.folder, work.manifest, index, torch.stack(run.vectors), expert)
    path.unlink(missing_ok=True)
    return expert


def epochs_done(path: Path, identity: str) -> int:
    """Epochs in a checkpoint, to show progress; 0 if there is no readable checkpoint of this store."""
    try:
        with open_tensors(path) as file:
            header = file.metadata() or {}
        return int(parsed(header["run"])["epoch"]) if header["identity"] == identity else 0
    except (ValueError, KeyError, TypeError):
        return 0


def _seed(work: Work, index: int) -> int:
    """The seed of a trajectory, which no evaluation has; half of those of older stores were others."""
    return seed_of("", work.manifest.seed, index) & ~EVALUATION


def _begin(work: Work, index: int, path: Path) -> _Run:
    """A trajectory from its checkpoint, or from the start; an unusable checkpoint is renamed."""
    run = _Run(work, index)
    try:
        run.resume(path)
    except MissingFile:
        return run
    except DamagedFile as error:
        set_aside(error, "the trajectory is trained from its start")
        return _Run(work, index)
    return run


class _Run:
    """A trajectory in training: the trainer, the vectors so far and their cost."""

    def __init__(self, work: Work, index: int) -> None:
        self.work, self.loss, self.cost = work, 0.0, Cost()
        self.gen = torch.Generator(work.data.x.device).manual_seed(_seed(work, index))
        start = work.network.init(self.gen)
        self.trainer = Trainer(work.network, work.data, work.manifest.training, start[None])
        self.vectors = [self._stored()]
        self.order = torch.empty(0)  # of the examples in this epoch
        self.losses: list[Tensor] = []  # of the steps of this epoch

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return self.trainer.number // self.work.manifest.epoch

    @property
    def within(self) -> int:
        """Steps done of the next epoch."""
        return self.trainer.number % self.work.manifest.epoch

    def advance(self, stop: Held) -> None:
        """Steps until the next checkpoint is due, a signal came, or all is done."""
        every, total = self.work.checkpoint_every, self.work.manifest.epochs
        end, due = time.monotonic() + (SECONDS if every is None else every), False
        with measure(every=0.2) as cost:
            while not due and stop.number is None and self.epoch < total:
                self._step()
                due = time.monotonic() >= end or (every is None and not self.within)
        self.cost += cost

    def _step(self) -> None:
        batch = self.work.manifest.training.batch
        if not self.within:
            self.order = torch.randperm(len(self.work.data), generator=self.gen, device=self.gen.device)
        start = self.within * batch
        self.losses.append(self.trainer.step(self.gen, self.order[None, start : start + batch]))
        if self.trainer.number in self.work.manifest.checkpoints:
            self.vectors.append(self._stored())
        if not self.within:
            self.loss, self.losses = float(torch.cat(self.losses).mean()), []

    def accuracy(self) -> float | None:
        if self.work.val is None:
            return None
        some, theta, net = self.work.val[:JUDGED], self.trainer.theta[0], self.work.network
        with torch.no_grad():
            guesses = torch.cat([net(theta, x).argmax(1) for x in in_parts(net, some.x, 256)])
        return float((guesses == some.hard).float().mean())

    def save(self, path: Path) -> None:
        tensors = {f"trainer.{name}": tensor for name, tensor in self.trainer.state().items()}
        tensors |= {"vectors": torch.stack(self.vectors), "gen": self.gen.get_state()}
        if self.within:
            tensors |= {"order": self.order, "losses": torch.cat(self.losses)}
        spent = {"wall": self.cost.wall, "cpu": self.cost.cpu, "memory": self.cost.memory}
        run = {"epoch": self.epoch, "loss": self.loss, "cost": spent}
        write_tensors(path, tensors, {"identity": self.work.manifest.identity, "run": json.dumps(run)})

    def resume(self, path: Path) -> None:
        """Resume from a checkpoint; after ``DamagedFile`` the run must not be used."""
        tensors, header = read_tensors(path)
        if header.get("identity") != self.work.manifest.identity:
            raise DamagedFile(path, "belongs to another store", "move it away.")
        try:
            self._restore(tensors, parsed(header["run"]))
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise DamagedFile(path, f"is corrupt or incompatible ({reason})", "move it away.") from error

    def _restore(self, tensors: dict[str, Tensor], run: dict[str, Any]) -> None:
        manifest, device = self.work.manifest, self.work.data.x.device
        self.trainer.restore({k.removeprefix("trainer."): t for k, t in tensors.items() if k.startswith("trainer.")})
        kept = sum(step <= self.trainer.number for step in manifest.checkpoints)
        if self.epoch != run["epoch"] or tensors["vectors"].shape != (kept, manifest.size):
            raise ValueError(f"its vectors are {tuple(tensors['vectors'].shape)} after epoch {run['epoch']}")
        if self.within:
            self.order, losses = tensors["order"].to(device), tensors["losses"].to(device)
            if losses.shape != (self.within,) or self.order.sort()[0].tolist() != list(range(len(self.work.data))):
                raise ValueError(f"its order and losses are not those of step {self.trainer.number}")
            self.losses = list(losses[:, None])
        self.loss, self.cost = float(run["loss"]), Cost(**run["cost"])
        self.gen.set_state(tensors["gen"])
        self.vectors = list(tensors["vectors"])

    def _stored(self) -> Tensor:
        kind = self.work.manifest.dtype
        vector = self.trainer.theta[0].to("cpu", DTYPES[kind], copy=True)
        if not bool(torch.isfinite(vector).all()):
            raise AttarError(f"Parameters do not fit into {kind}: store float32, or lower the learning rate.")
        return vector
