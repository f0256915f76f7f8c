"""From a data set and a network to a store of trajectories, trained once and found again."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import nn

from attar.core.errors import AttarError, DamagedFile, MissingFile, unknown
from attar.core.files import set_aside
from attar.data import Data, Split
from attar.engine import run_all
from attar.experts.schedule import SMALL
from attar.experts.store import DTYPES, Expert, Manifest, Trajectories, read_expert, shard
from attar.experts.trajectory import Work, checkpoint, epochs_done, grow
from attar.nets import Network
from attar.nets import network as build_network
from attar.nets.train import Trainer, Training

Spec = str | Network | Callable[[], nn.Module]


class Progress(NamedTuple):
    """Where a build stands, in epochs of all trajectories together."""

    done: int
    total: int
    left: float | None  #: seconds, once a first epoch shows how fast it goes


Watch = Callable[[Progress], None]


def build(
    data: Data | Split,
    network: Spec,
    folder: str | Path,
    *,
    trajectories: int = SMALL.trajectories,
    epochs: int = SMALL.epochs,
    training: Training = SMALL.training,
    workers: int = 1,
    dtype: Literal["float32", "float16"] = "float32",
    seed: int = 0,
    watch: Watch | None = None,
) -> Trajectories:
    """Train networks on the full data and keep their parameters after every epoch.

    What is already in the folder is not trained again: a build that was killed goes on after its last finished epoch
    and ends in the same bits, and one that asks for more trajectories trains only those.

    Args:
        data: The training data, or a ``Split``, whose validation set then scores every finished trajectory.
        network: A name, a ``Network`` or a module factory; the latter trains in this process only.
        folder: Where the trajectories go, one file each.
        trajectories: Networks to train, each from its own initialisation.
        epochs: Passes through the data.
        training: Optimiser, batch, augmentation and loss; its ``steps`` follow from the epochs.
        workers: Processes that train at the same time, among which the cores are divided. With more than one, a script
            must guard its own start with ``if __name__ == "__main__"``.
        dtype: How vectors are stored; float16 halves the disk and keeps three digits.
        seed: Fixes every random choice.
        watch: Called now and then, from a thread, with how far it is.
    """
    train, val = (data.train, data.val) if isinstance(data, Split) else (data, None)
    net = build_network(network, train.spec)
    wanted = request(train, net, trajectories, epochs, training, dtype, seed)
    place = Path(folder)
    if net.name.startswith("custom:"):
        workers = 1  # a function of the user's own may not survive the way to another process
    with _alone(place):
        manifest = _open(place, wanted)
        work = Work(train, val, net, manifest, place)
        done = _finished(place, manifest)
        _record(place, manifest, done)
        missing = [index for index in range(manifest.trajectories) if index not in done]
        with _watched(work, missing, watch):
            for index, expert in run_all(grow, work, missing, workers=min(workers, len(missing) or 1)):
                done[index] = expert
                _record(place, manifest, done)
    return Trajectories.open(place, trajectories)


def experts(
    data: Data | Split,
    network: Spec,
    *,
    trajectories: int = SMALL.trajectories,
    epochs: int = SMALL.epochs,
    training: Training = SMALL.training,
    workers: int = 1,
    dtype: Literal["float32", "float16"] = "float32",
    seed: int = 0,
    watch: Watch | None = None,
    root: str | Path | None = None,
) -> Trajectories:
    """The experts for this data, network and schedule, trained only if they never were.

    Arguments are those of ``build``; ``root`` is where stores are kept, by default ``$ATTAR_EXPERTS``, else
    ``~/.cache/attar/experts``.
    """
    train = data.train if isinstance(data, Split) else data
    net = build_network(network, train.spec)
    place = home(request(train, net, trajectories, epochs, training, dtype, seed), root)
    return build(
        data,
        net,
        place,
        trajectories=trajectories,
        epochs=epochs,
        training=training,
        workers=workers,
        dtype=dtype,
        seed=seed,
        watch=watch,
    )


def find(
    data: Data,
    network: Network,
    *,
    trajectories: int = SMALL.trajectories,
    epochs: int = SMALL.epochs,
    training: Training = SMALL.training,
    dtype: Literal["float32", "float16"] = "float32",
    seed: int = 0,
    root: str | Path | None = None,
) -> Trajectories:
    """The experts that ``experts`` with these arguments made; an error that says how to make them if it never ran."""
    wanted = request(data, network, trajectories, epochs, training, dtype, seed)
    place = home(wanted, root)
    try:
        there = Manifest.load(place).trajectories
    except MissingFile:
        there = 0
    if there < trajectories:
        raise missing(data, network, trajectories=trajectories, epochs=epochs, training=training)
    return Trajectories.open(place, trajectories)


def missing(
    data: Data,
    network: Network,
    *,
    trajectories: int = SMALL.trajectories,
    epochs: int = SMALL.epochs,
    training: Training = SMALL.training,
) -> AttarError:
    """The error for experts that are not there: the command that makes them, and how long that takes here."""
    wanted = request(data, network, trajectories, epochs, training)
    took = duration(estimate(data, network, wanted.training) * trajectories / cores())
    return AttarError(
        f"There are no experts of {network.name} on {data.spec.name!r}: run `{wanted.command}`, or "
        f"attar.experts.experts in Python, which takes about {took} here."
    )


def estimate(data: Data, network: Network, training: Training, examples: int = 16) -> float:
    """Seconds that one core takes for all steps of a training, by the time of two short ones."""
    few = data[: min(examples, training.batch)]
    gen = torch.Generator(data.x.device).manual_seed(0)
    trainer = Trainer(network, few, replace(training, steps=3), network.init(gen)[None])
    trainer.step(gen)  # the first pays for what later ones find ready
    start = time.process_time()
    for _ in range(2):
        trainer.step(gen)
    step = (time.process_time() - start) / 2
    return step * training.steps * min(training.batch, len(data)) / len(few)


def duration(seconds: float) -> str:
    """A time that a person reads at a glance."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{round(seconds)} seconds" if seconds >= 1.5 else "a second"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def home(manifest: Manifest, root: str | Path | None = None) -> Path:
    """The folder in which ``experts`` keeps a store: its name holds a hash of all that decides the vectors."""
    if manifest.network.startswith("custom:"):
        raise AttarError("A module of your own has no name to find experts by: use attar.experts.build and a folder.")
    place = Path(root or os.environ.get("ATTAR_EXPERTS") or "~/.cache/attar/experts").expanduser()
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in manifest.data)
    return place / f"{plain}-{manifest.network}-{manifest.identity[:16]}"


def request(
    data: Data,
    network: Network,
    trajectories: int,
    epochs: int,
    training: Training,
    dtype: Literal["float32", "float16"] = "float32",
    seed: int = 0,
) -> Manifest:
    """What ``build`` with these arguments would make."""
    for name, value in (("trajectories", trajectories), ("epochs", epochs)):
        if value < 1:
            raise AttarError(f"{name} must be at least 1, got {value}.")
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    return Manifest(
        data=data.spec.name,
        fingerprint=data.fingerprint,
        network=network.name,
        shape=network.shape,
        classes=network.classes,
        size=network.size,
        epochs=epochs,
        training=replace(training, steps=epochs * max(1, len(data) // training.batch)),
        seed=seed,
        dtype=dtype,
        trajectories=trajectories,
    )


def _open(folder: Path, wanted: Manifest) -> Manifest:
    """The folder's manifest, made to hold at least what is wanted; a store of something else is refused."""
    try:
        found = Manifest.load(folder)
    except MissingFile:
        wanted.save(folder)
        return wanted
    if found.identity != wanted.identity:
        raise AttarError(
            f"{folder} holds experts made by `{found.command}` on data with fingerprint {found.fingerprint}, asked is "
            f"`{wanted.command}` on {wanted.fingerprint}: choose another folder."
        )
    if found.trajectories < wanted.trajectories:
        found = replace(found, trajectories=wanted.trajectories)
        found.save(folder)
    return found


def _finished(folder: Path, manifest: Manifest) -> dict[int, Expert]:
    """The trajectories that are there, by their number; a file that is not one of this store is kept aside.

    A file that cannot be read now ends the build: it may be whole, and then it must not be trained again.
    """
    found = {}
    for index in range(manifest.trajectories):
        try:
            found[index] = read_expert(folder, manifest, index)
        except MissingFile:
            continue
        except DamagedFile as error:
            set_aside(error, "the trajectory is trained again")
    return found


def _record(folder: Path, manifest: Manifest, done: Mapping[int, Expert]) -> None:
    replace(manifest, experts=tuple(done[index] for index in sorted(done))).save(folder)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time build a store; the others wait, and then find it finished."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise AttarError(
            f"Could not write to {folder} ({error}): choose another folder, or check the permissions and the limit of "
            "open files (`ulimit -n`)."
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _watched(work: Work, missing: list[int], watch: Watch | None) -> Iterator[None]:
    """Tell ``watch`` how far the trajectories are, by what lies on disk, wherever they are trained."""
    if watch is None or not missing:
        yield
        return
    manifest, done = work.manifest, threading.Event()
    total, begin = manifest.trajectories * manifest.epochs, time.monotonic()

    def count() -> int:
        finished = [index for index in range(manifest.trajectories) if shard(work.folder, index).exists()]
        waiting = set(range(manifest.trajectories)) - set(finished)
        under_way = sum(epochs_done(checkpoint(work.folder, i), manifest.identity) for i in waiting)
        return len(finished) * manifest.epochs + under_way

    before = count()

    def tell() -> None:
        now = count()
        spent = time.monotonic() - begin
        watch(Progress(now, total, spent * (total - now) / (now - before) if now > before else None))

    def loop() -> None:
        while not done.wait(1.0):
            tell()

    tell()
    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    tell()
