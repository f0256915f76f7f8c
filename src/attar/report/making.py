"""How coresets were learnt: films of their examples, and charts from their logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import torch

from attar.condense.film import Film
from attar.core.errors import AttarError
from attar.core.files import inside
from attar.report.blocks import Figure
from attar.report.gallery import Strip
from attar.report.images import TILE, data_uri, drawable, heat_strip, standardise, strip
from attar.report.journal import figures, read_log
from attar.report.rows import Row
from attar.study.grid import Job


@dataclass(frozen=True)
class Reel:
    """A film as strips, one per class."""

    frames: list[str] = field(default_factory=list)  #: the steps they show
    strips: list[Strip] = field(default_factory=list)
    pictures: bool = True


@dataclass(frozen=True)
class Making:
    """How the first seed of a row was learnt; a note for each file that cannot be shown."""

    row: Row
    seed: int
    reel: Reel = Reel()
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def told(self) -> bool:
        """Whether any of its files exists."""
        return bool(self.reel.strips or self.figures or self.notes)


def makings(table: list[Row], folder: Path, classes: Sequence[str]) -> list[Making]:
    """Films and charts of every row whose examples were learnt."""
    return [_making(row, folder, classes) for row in table if row.runs[0].family not in ("select", "full")]


def _making(row: Row, folder: Path, classes: Sequence[str]) -> Making:
    seed = min(run.seed for run in row.runs)
    key = Job(row.method, row.per_class, seed).key
    film, log = f"films/{key}.safetensors", f"logs/{key}.jsonl"
    # A name from a file is used as a path only if it is a valid name of a study.
    there = [name for name in (film, log) if re.fullmatch(r"[\w.+=-]+", key) and inside(folder, name)]
    if not there:
        return Making(row, seed)
    reel, charts = Reel(), []
    notes = [
        f"The file {name} is not in the study’s folder, so it is not shown."
        for name in (film, log)
        if name not in there
    ]
    if film in there:
        try:
            shown = Film.load(folder / film)
            reel, notes = _reel(shown, classes), notes + _cuts(shown, classes)
        except AttarError:
            notes.append(f"The file {film} is not a complete film of this study, so it is not shown.")
    if log in there:
        try:
            charts = figures(read_log(folder / log), row)
        except AttarError:
            notes.append(f"The file {log} is not a complete log, so it is not shown.")
    return Making(row, seed, reel, charts, notes)


def _reel(film: Film, classes: Sequence[str]) -> Reel:
    labels, x = film.labels.tolist(), torch.stack(list(film.frames.values()))
    if max(labels) >= len(classes):
        raise AttarError("This film is for other classes: run the study again.")
    pictures = drawable(x.shape[2:])
    scale = ceil(TILE / max(x.shape[3:])) if pictures else 1
    values = x if pictures else standardise(x.flatten(0, 1)).reshape(*x.shape[:2], -1)
    strips = []
    for i, label in enumerate(labels):
        image = strip(values[:, i], len(values), scale) if pictures else heat_strip(values[:, i])
        alt = f"class {classes[label]} at the steps {', '.join(map(str, film.frames))}"
        strips.append(Strip(classes[label], alt, data_uri(image), image.width, image.height))
    return Reel([f"{step:,}" if step else "start" for step in film.frames], strips, pictures)


def _cuts(film: Film, classes: Sequence[str]) -> list[str]:
    """Notes on what is not shown."""
    notes, last = [], max(film.frames)
    if len(film.labels) < len(classes):
        notes.append(f"{len(film.labels)} of {len(classes)} classes are shown.")
    if last < film.total:
        notes.append(f"The film ends at step {last:,} of {film.total:,}.")
    return notes
