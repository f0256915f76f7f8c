"""A selection from a table, decided but not run: its parts, the picks of each, and a forecast of memory and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from attar.core.budget import in_bytes, shown
from attar.core.errors import AttarError
from attar.core.forecast import lap
from attar.data import Data
from attar.data.parts import InParts
from attar.data.parts.tables import Segment
from attar.data.split import Reading
from attar.data.text import DIMENSION, LONGEST
from attar.nets.rehearsal import rehearsal
from attar.nets.train import Trainer, Training
from attar.select import budget as shares
from attar.select.contract import Selector
from attar.select.large.jobs import Job, Turn, jobs_of, parts_of, turns_of
from attar.select.large.rows import Mark
from attar.select.large.scorer import SAMPLE, Scorer, labels_of, scorer
from attar.select.large.survey import Survey, survey
from attar.select.large.work import How, Task, one_thread, picked
from attar.select.stream import Streaming
from attar.select.uniform import Uniform

PART, LEAST = 4096, 64  #: rows of a part by default, and at least
SHRINK = 4  #: how many times as many rows as picks a part has, if all picks are taken from every part
TOGETHER = 32  #: parts whose picks are kept in one file, at most
MEMORY = "2GB"
LIBRARIES = 400_000_000  #: bytes of PyTorch, Arrow and Python themselves
PASS = 100_000_000  #: bytes of the activations of a forward pass, for images and texts
STEPS, ROUNDS = 3, 3  #: steps of training, and readings and selections of a part, that are timed
CPU = torch.device("cpu")


@dataclass(frozen=True)
class LargePlan:
    """A selection from a table that is decided.

    Args:
        columns: The table.
        method: The method.
        jobs: How the table is cut.
        known: Its classes.
        sizes: Picks in all, or of every class if ``divided``.
        divided: Whether classes have picks of their own.
        part: Rows of a part at most.
        memory: Bytes that each process may take.
        numbers: Numbers of one example as a network takes it.
        network: The network's name, or a trained module.
        training: Training of the scoring network.
        seed: The user's seed.
        reading: How texts become tokens.
        sample: Rows that the scoring network is trained on, at most.
        asked: The budget as the user gave it.
        surveyed: Seconds that the first reading took.
    """

    columns: InParts
    method: Selector
    jobs: list[Job]
    known: Survey
    sizes: tuple[int, ...]
    divided: bool
    part: int
    memory: int
    numbers: int
    sample: int
    network: str | nn.Module | None = None
    training: Training = field(default_factory=Training)
    seed: int = 0
    reading: Reading = Reading()
    asked: Mapping[str, Any] = field(default_factory=dict)
    surveyed: float = 0.0

    @property
    def forecast(self) -> int:
        """Bytes that each process will take, about."""
        return _needed(self.part, self.columns, self.numbers, self.sample)

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.jobs[-1].start + self.jobs[-1].rows

    @property
    def parts(self) -> int:
        """Parts of the table."""
        return self.jobs[-1].first + len(self.jobs[-1].sizes)

    @cached_property
    def turns(self) -> list[Turn]:
        """Parts that are kept in one file: few enough for their picks to fit into a part."""
        return turns_of(self.jobs, max(1, min(TOGETHER, self.part // sum(self.sizes))))

    @property
    def how(self) -> How:
        """How the picks of parts become one selection."""
        if self.method.ranked or isinstance(self.method, Uniform):
            return "best"
        if isinstance(self.method, Streaming):
            return "stream"
        return "again" if SHRINK * sum(self.sizes) <= self.part else "shares"

    def task(self, seen: Scorer | None) -> Task:
        """What every job needs to know."""
        return Task(self.columns, self.known, self.method, self.sizes, self.divided, self.how, self.seed, seen)

    def scorer(self, rows: int | None = None) -> Scorer | None:
        """What examples are seen through; ``rows`` are for an estimate of time."""
        if isinstance(self.method, Uniform):
            return None
        with one_thread():
            return scorer(
                self.columns,
                self.jobs,
                self.known,
                self.method,
                net=self.network,
                training=self.training,
                seed=self.seed,
                reading=self.reading,
                most=self.sample,
                rows=rows,
            )

    def seconds(self, workers: int = 1) -> float:
        """How long the selection takes on this machine, from rehearsals of one part and a few steps of training.

        Jobs are shared among the workers; the first reading, training, its sample, streams and the selection among
        picks are not.
        """
        first = Job(0, 0, 0, self.jobs[0].sizes[:1], self.jobs[0].segments)
        seen = self.scorer(first.rows)
        reading = picking = keeping = float("inf")
        for _ in range(ROUNDS):  # the first time includes one-time set-up, and other processes only add time
            with lap(CPU, waits=True) as read:
                batch = next(parts_of(self.columns, first, x=seen is not None))
            with lap(CPU) as selected, one_thread():
                rows = picked(self.task(seen), 0, batch)
            with TemporaryDirectory(prefix="attar-select-") as place, lap(CPU) as kept:
                Mark(Path(place) / "0", "").save(rows)
                Mark(Path(place) / "0", "").load()
            reading, picking = min(reading, read.seconds / first.rows), min(picking, selected.seconds / first.rows)
            keeping = min(keeping, kept.seconds)
        shared = 1 if self.how == "stream" else min(workers, len(self.jobs))
        parts = self.rows * ((reading + picking) / shared + picking * (self._levels() - 1)) + len(self.turns) * keeping
        if seen is None or seen.theta is None:
            return self.surveyed + parts
        some = Data(seen.inputs(batch.x), labels_of(batch, self.known), spec=seen.spec)
        return self.surveyed + parts + self.rows * reading + self.training.steps * _step(seen, some, self.training)

    def _levels(self) -> float:
        """How often a row is selected from: once, and its share in the unions of picks."""
        share = sum(self.sizes) * self.parts / self.rows if self.how == "again" and self.parts > 1 else 0.0
        return 1 / (1 - min(share, 0.5))

    def describe(self) -> str:
        """The parts and the picks of each, in one sentence."""
        size, parts = sum(self.sizes), self.parts
        if parts == 1:
            return f"{size:,} picks from {self.rows:,} rows in one part"
        each = {
            "best": "the rows of highest score of all parts are kept",
            "again": f"{size:,} picks of each, then {size:,} of these",
            "stream": "rows go by once, in order",
            "shares": f"each gives its share, about {max(1, round(size / parts)):,} picks{self._without()}",
        }[self.how]
        return f"{size:,} picks from {self.rows:,} rows in {parts:,} parts of at most {self.part:,}: {each}"

    def _without(self) -> str:
        """What shares lack, and from which size of parts on they are not needed."""
        part = min(self.rows, SHRINK * sum(self.sizes))
        needs = shown(_needed(part, self.columns, self.numbers, self.sample))
        return f". Shares have no guarantee; with --part {part} or more, which needs about {needs}, each gives all"


def plan(
    columns: InParts,
    method: Selector,
    *,
    size: int | None = None,
    fraction: float | None = None,
    per_class: int | None = None,
    balanced: bool | None = None,
    budget: str | None = None,
    part: int | None = None,
    memory: int | str | None = None,
    network: Any = None,
    training: Training | None = None,
    seed: int = 0,
    reading: Reading = Reading(),
    folder: Path | None = None,
) -> LargePlan:
    """Decide a selection from a table; ``attar.select`` documents the arguments."""
    if method.needs.validation:
        raise AttarError(
            "Methods named -val need a validation set, which a table in parts has none of: choose another."
        )
    if not isinstance(network, str | nn.Module | None):
        raise AttarError("For a table in parts, give the network as a name or as a trained module.")
    allowed = in_bytes(MEMORY if memory is None else memory, "memory")
    _ = columns.schema  # raises if files differ or a column is missing
    segments = columns.table.segments()
    if not segments:
        raise AttarError(f"{columns.where} has no rows: give files with at least one.")
    numbers = _numbers(columns, segments[0])
    sample = max(LEAST, min(SAMPLE, allowed // 16 // (4 * numbers)))
    chosen = _part(part, allowed, columns, numbers, sample)
    jobs = jobs_of(segments, chosen)
    with lap(CPU, waits=True) as surveyed:
        known = survey(columns, jobs, allowed // 8, None if folder is None else folder / "survey.json")
    shared = shares.asked(balanced, budget, per_class)
    if isinstance(method, Streaming) and shared is not None:
        raise AttarError(
            "A stream is not divided into classes: leave out per_class, balanced and budget, or choose k-center."
        )
    sizes = _sizes(known, sum(job.rows for job in jobs), size, fraction, per_class, shared)
    return LargePlan(
        *(columns, method, jobs, known, sizes, shared is not None, chosen, allowed, numbers, sample),
        network=network,
        training=training or Training(),
        seed=seed,
        reading=reading,
        asked={"size": size, "fraction": fraction, "per_class": per_class, "budget": shared},
        surveyed=surveyed.seconds,
    )


def _sizes(
    known: Survey, rows: int, size: int | None, fraction: float | None, per_class: int | None, budget: str | None
) -> tuple[int, ...]:
    """Picks in all, or of every class."""
    if budget is None:
        return (shares.total(rows, size, fraction),)
    if not known.values:
        raise AttarError("Class balance needs labels: give the column of classes with --label.")
    counts = known.table.sum(0)
    shares.warn_if_skewed(counts, budget)
    if per_class is None:
        return tuple(shares.divide(counts, shares.total(rows, size, fraction), budget))
    if size is not None or fraction is not None:
        raise AttarError("Give the budget as one of size, fraction and per_class.")
    if budget != shares.BALANCED:
        return tuple(shares.divide(counts, per_class * len(known.values), budget))
    for name, count in zip(known.names, counts.tolist(), strict=True):
        if not 1 <= per_class <= count:
            raise AttarError(f"Class {name!r} has {count} examples, but {per_class} per class were asked for.")
    return (per_class,) * len(known.values)


def _numbers(columns: InParts, segment: Segment) -> int:
    """Numbers of one example as a network takes it."""
    if columns.kind == "texts":
        return LONGEST * DIMENSION
    first = next(columns.read([segment], 0, keys=False, only=np.arange(1)))
    return prod(first.x.shape[1:])  # type: ignore[union-attr]


def _part(asked: int | None, allowed: int, columns: InParts, numbers: int, sample: int) -> int:
    """Rows of a part: as asked for, or the most that memory allows up to the default."""
    part = PART if asked is None else asked
    while (needs := _needed(part, columns, numbers, sample)) > allowed:
        if asked is not None or part // 2 < LEAST:
            smaller = ", or ask for smaller parts" if _needed(LEAST, columns, numbers, sample) <= allowed else ""
            raise AttarError(
                f"A part of {part:,} rows needs about {shown(needs)} of memory, and {shown(allowed)} is allowed: allow "
                f"more with --memory{smaller}."
            )
        part //= 2
    return part


def _needed(part: int, columns: InParts, numbers: int, sample: int) -> int:
    """Bytes of a process: rows as they are read, as tensors and centred, and picked before; distances; the sample."""
    through = 0 if columns.kind == "vectors" else PASS
    return LIBRARIES + through + 4 * numbers * (4 * part + 2 * sample) + 6 * part**2


def _step(seen: Scorer, data: Data, training: Training) -> float:
    """Seconds of one step of training."""
    net, gen = seen.network, torch.Generator().manual_seed(0)
    with one_thread(), rehearsal(brief=False) as trained:
        trainer = Trainer(net, data, training, net.init(gen)[None])
        for _ in range(1 + STEPS):
            trainer.step(gen)
    return trained.seconds / (1 + STEPS)
