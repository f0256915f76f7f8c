"""The film of a condensation: snapshots of one example per class at a few steps, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import read_tensors, set_aside, write_tensors
from attar.data import Data

FORMAT = "attar-film-1"
CLASSES = 20  #: shown at most, one example each
FRAMES = 20  #: at most
NUMBERS = 2**22  #: kept at most, 16 MiB of them, unless one example alone has more


@dataclass(frozen=True)
class Film:
    """Some synthetic examples at some steps, in the units of the original data (images in [0, 1])."""

    labels: Tensor  #: class of every example before the first step, (n,)
    frames: Mapping[int, Tensor]  #: (n, ...) by step; 0 is before the first one
    total: int  #: steps of the whole run
    identity: str = ""  #: of the run that it shows

    def plus(self, number: int, x: Tensor) -> Film:
        """The same film with one more frame; a frame that is not finite is left out."""
        return replace(self, frames={**self.frames, number: x}) if bool(torch.isfinite(x).all()) else self

    def joined(self, path: Path, steps: set[int]) -> Film:
        """The same film with the frames of these steps that an earlier part of the same run saved in ``path``."""
        try:
            old = Film.load(path)
        except MissingFile:
            return self
        except DamagedFile as error:
            set_aside(error, "the film begins anew")
            return self
        if (old.identity, old.total) != (self.identity, self.total) or not torch.equal(old.labels, self.labels):
            return self
        kept = {step: x for step, x in old.frames.items() if step in steps and x.shape == self.frames[0].shape}
        return replace(self, frames={**kept, **self.frames})

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        steps = sorted(self.frames)
        tensors = {"steps": torch.tensor(steps), "x": torch.stack([self.frames[step] for step in steps])}
        header = {"format": FORMAT, "identity": self.identity, "total": str(self.total)}
        write_tensors(path, tensors | {"labels": self.labels}, header)

    @staticmethod
    def load(path: Path) -> Film:
        """Read a film; everything is checked before it is used."""
        tensors, header = read_tensors(path)
        if header.get("format") != FORMAT:
            raise DamagedFile(path, "is not a film of this library", "move it away.")
        try:
            steps, x, labels = (tensors[name] for name in ("steps", "x", "labels"))
            film = Film(labels, dict(zip(steps.tolist(), x, strict=True)), int(header["total"]), header["identity"])
            _check(film, steps, x)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise DamagedFile(path, f"was changed after it was written ({error})", "move it away.") from error
        return film


def places(data: Data, frames: int) -> Tensor:
    """Indices of the first example of each class, up to the number that a film may hold."""
    most = max(1, min(CLASSES, NUMBERS // (frames * data.x[0].numel())))
    found = [(data.hard == c).nonzero().flatten()[:1] for c in range(data.classes)]
    return torch.cat(found)[:most]


def moments(total: int, frames: int) -> set[int]:
    """Evenly spaced steps, from 0 (before the first update) to the last."""
    if not 2 <= frames <= FRAMES:
        raise AttarError(f"A film has 2 to {FRAMES} frames, got {frames}.")
    return {round(k * total / (frames - 1)) for k in range(frames)}


def _check(film: Film, steps: Tensor, x: Tensor) -> None:
    n = len(film.labels)
    if not x.is_floating_point() or x.ndim not in (3, 5) or x.numel() == 0 or x.shape[1] != n or n > CLASSES:
        raise ValueError(f"x must hold up to {CLASSES} float examples a frame")
    if film.labels.dtype != torch.int64 or film.labels.ndim != 1 or bool((film.labels < 0).any()):
        raise ValueError("labels must be classes")
    order = steps.tolist()
    if steps.dtype != torch.int64 or len(order) > FRAMES or order[0] != 0 or order != sorted(set(order)):
        raise ValueError("steps must go up from 0")
    if order[-1] > film.total:
        raise ValueError("steps must not go beyond the run")
