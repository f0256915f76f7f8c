"""Progress and time estimates of training experts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from attar.data import Data
from attar.experts.store import shard
from attar.experts.trajectory import Work, checkpoint, epochs_done
from attar.nets import Network
from attar.nets.train import Trainer, Training


class Progress(NamedTuple):
    """Progress of a build, in epochs summed over trajectories."""

    done: int
    total: int
    left: float | None  #: seconds; None before the first epoch is done


Watch = Callable[[Progress], None]

TIMED = 0.2  #: processor seconds of steps that are timed for an estimate; at least one step is


def estimate(data: Data, network: Network, training: Training) -> float:
    """Seconds of a whole training on one core, from the time of a few of its steps."""
    gen = torch.Generator(data.x.device).manual_seed(0)
    trainer = Trainer(network, data[: training.batch], training, network.init(gen)[None])
    with _one_thread():  # several threads take more processor time, partly to wait for each other
        trainer.step(gen)  # the first step includes one-time set-up
        start, steps, spent = time.process_time(), 0, 0.0
        while not steps or (steps < training.steps and spent < TIMED):
            trainer.step(gen)
            steps, spent = steps + 1, time.process_time() - start
    return spent / steps * training.steps


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def watched(work: Work, missing: list[int], watch: Watch | None) -> Iterator[None]:
    """Report progress to ``watch``, by the files on disk, wherever the trajectories are trained."""
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
