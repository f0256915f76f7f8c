"""A folder of trajectories: one memory-mapped file each, and a manifest that describes them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from pydantic import TypeAdapter
from torch import Generator, Tensor

from attar.core.aside import read_cost, write_cost
from attar.core.checksum import row_digest
from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import open_tensors, write_tensors
from attar.experts.manifest import Expert, Manifest
from attar.nets import Network

EARLY = 40  #: steps of training after which networks are ``early``; small sets match what happens until then


class Trajectories:
    """Parameter vectors of networks during training on the full data.

    The vectors stay on disk and are read one at a time, so memory does not grow with the store. They are found by
    their time in epochs: 0 is the initialisation, and there is one after every epoch. If the experts were trained with
    checkpoints within the first epoch, fractions are times too.

    Args:
        folder: The folder of the store.
        manifest: Its description.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest

    @staticmethod
    def open(folder: str | Path, trajectories: int | None = None) -> Trajectories:
        """Open the store in a folder, or its first ``trajectories``; an incomplete store is refused."""
        folder = Path(folder)
        manifest = Manifest.load(folder)
        asked = manifest.trajectories if trajectories is None else trajectories
        if not 1 <= asked <= manifest.trajectories:
            raise AttarError(
                f"{folder} has {manifest.trajectories} trajectories, not {asked}: train more with `attar experts`."
            )
        for index in range(asked):
            read_expert(folder, manifest, index)
        return Trajectories(folder, replace(manifest, trajectories=asked, experts=manifest.experts[:asked]))

    def __len__(self) -> int:
        return self.manifest.trajectories

    @property
    def epochs(self) -> int:
        """Epochs per trajectory."""
        return self.manifest.epochs

    @property
    def times(self) -> tuple[float, ...]:
        """The checkpoints in epochs: 0, perhaps fractions of the first epoch, 1, 2, and so on."""
        return tuple(step / self.manifest.epoch for step in self.manifest.checkpoints)

    @property
    def early(self) -> float:
        """The epoch of the first checkpoint after ``EARLY`` steps of training, or of the last one if all are before."""
        steps = self.manifest.checkpoints
        return next((step for step in steps if step >= EARLY), steps[-1]) / self.manifest.epoch

    @property
    def size(self) -> int:
        """Length of a vector, p."""
        return self.manifest.size

    def vector(self, trajectory: int, epoch: float) -> Tensor:
        """The parameters ``(p,)`` of one trajectory at one of its ``times``, as float32; no other vector is read."""
        if not 0 <= trajectory < len(self):
            raise AttarError(f"There is no trajectory {trajectory}: the store has 0 to {len(self) - 1}.")
        if not 0 <= epoch <= self.epochs:
            raise AttarError(
                f"There is no epoch {epoch:g}: the trajectories go from 0, their initialisation, to {self.epochs}; "
                "choose an earlier one, or train longer with `attar experts --epochs`."
            )
        row = self._between(epoch, epoch)[0]
        path = shard(self.folder, trajectory)
        with _reading(path, self.manifest):
            with open_tensors(path) as file:
                stored, told = file.get_slice("theta")[row], (file.metadata() or {}).get("rows")
                if told is not None and [row_digest(stored)] != told.split()[row : row + 1]:
                    raise ValueError(f"epoch {epoch:g} changed after it was written")
                found: Tensor = stored.to(torch.float32, copy=True)
            if found.shape != (self.size,) or not bool(torch.isfinite(found).all()):
                raise ValueError(f"epoch {epoch:g} is not {self.size} finite numbers")
        return found

    def draw(self, gen: Generator, first: float = 0, last: float | None = None) -> tuple[int, float]:
        """A random trajectory, and a random checkpoint of it from epoch ``first`` to ``last``.

        Both are included; ``last`` is by default the end.
        """
        last = self.epochs if last is None else last
        if not 0 <= first <= last <= self.epochs:
            raise AttarError(
                f"Epochs {first:g} to {last:g} were asked for, but the trajectories have 0 to {self.epochs}: choose "
                "from these, or train longer with `attar experts --epochs`."
            )
        return self._drawn(self._between(first, last), gen)

    def pair(self, gen: Generator, ahead: float, last: float | None = None) -> tuple[tuple[int, float], Tensor, Tensor]:
        """A random trajectory and checkpoint from epoch 0 to ``last``, its vector, and that ``ahead`` epochs later.

        A fraction of the first epoch stands for the first checkpoint at or after it. Starts with no checkpoint
        ``ahead`` of them are not drawn.
        """
        latest = self.epochs - ahead if last is None else last
        if latest < 0 or (latest + ahead - self.epochs) * self.manifest.epoch > 0.5:
            raise AttarError(
                f"Epochs 0 to {latest:g} and {ahead:g} ahead were asked for, but the trajectories end at "
                f"{self.epochs}: start earlier, look less far ahead, or train longer with `attar experts --epochs`."
            )
        targets = {row: found for row in self._between(0, latest) if (found := self._ahead(row, ahead)) is not None}
        if not targets:
            raise self._sparse(ahead)
        place = self._drawn(list(targets), gen)
        target = self.times[targets[self.times.index(place[1])]]
        return place, self.vector(*place), self.vector(place[0], target)

    def _drawn(self, rows: list[int], gen: Generator) -> tuple[int, float]:
        trajectory = int(torch.randint(len(self), (), generator=gen, device=gen.device))
        return trajectory, self.times[rows[int(torch.randint(len(rows), (), generator=gen, device=gen.device))]]

    def _between(self, first: float, last: float) -> list[int]:
        """The checkpoints from one epoch to another, to half a step; raises if there is none.

        A time between two checkpoints of the first epoch stands for the second one. Only time 0 is untrained.
        """
        low, high = first * self.manifest.epoch - 0.5, last * self.manifest.epoch + 0.5
        steps = enumerate(self.manifest.checkpoints)
        rows = [row for row, step in steps if low < step < high and (step > 0 or first == 0)]
        if not rows:
            rows = [row for row in [self._next(self._steps(first))] if row is not None]
        if not rows:
            raise self._sparse(last)
        return rows

    def _ahead(self, row: int, ahead: float) -> int | None:
        """The checkpoint so many epochs after another one."""
        return self._next(self.manifest.checkpoints[row] + self._steps(ahead))

    def _next(self, goal: int) -> int | None:
        """The checkpoint after so many steps; within the first epoch that or the next one."""
        steps, epoch = self.manifest.checkpoints, self.manifest.epoch
        later = next((found for found, step in enumerate(steps) if step >= goal), None)
        if later is None or steps[later] - goal >= (self.manifest.every if goal < epoch else 1):
            return None
        return later

    def _steps(self, epochs: float) -> int:
        return max(1, round(epochs * self.manifest.epoch))

    def _sparse(self, epoch: float) -> AttarError:
        """The error for a time between two checkpoints, with the command for experts that have it."""
        own, every = self.manifest, max(1, round(epoch * self.manifest.epoch))
        if every >= own.epoch:
            return AttarError(
                f"The experts in {self.folder} have no checkpoint at epoch {epoch:g}, because only the first epoch has "
                "checkpoints within it: choose whole epochs, or times before epoch 1."
            )
        return AttarError(
            f"The experts in {self.folder} have no checkpoint at epoch {epoch:g}: run "
            f"`{replace(own, every=every).command}` for experts that have, or choose from {_listed(self.times)}."
        )

    def check(self, network: Network, fingerprint: str | None = None) -> None:
        """Refuse a store of another network, or of other data if ``fingerprint`` is given."""
        own = self.manifest
        if (network.name, network.shape, network.classes, network.size) != (
            own.network,
            own.shape,
            own.classes,
            own.size,
        ):
            raise AttarError(
                f"The experts in {self.folder} are {own.network} for shape {own.shape} and {own.classes} classes "
                f"({own.size} parameters), but asked for is {network.name} for shape {network.shape} and "
                f"{network.classes} ({network.size}): use their network, or train others with `attar experts`."
            )
        if fingerprint is not None and fingerprint != own.fingerprint:
            raise AttarError(
                f"The experts in {self.folder} were trained on {own.data!r} with fingerprint {own.fingerprint}, but "
                f"this data has fingerprint {fingerprint}: use the same data, scaling and split, or train new experts."
            )

    def __repr__(self) -> str:
        return f"Trajectories({self.manifest.network!r} on {self.manifest.data!r}, {len(self)} × {self.epochs} epochs)"


def shard(folder: Path, index: int) -> Path:
    """The file of one trajectory."""
    return folder / f"trajectory-{index:04d}.safetensors"


def write_expert(folder: Path, manifest: Manifest, index: int, theta: Tensor, expert: Expert) -> None:
    """Write one finished trajectory: a vector for each checkpoint, ``(checkpoints, p)``."""
    rows = " ".join(row_digest(row) for row in theta)  # vectors are read one by one, so each has a checksum
    about = TypeAdapter(Expert).dump_json(expert, exclude={"cost"}).decode()
    write_cost(shard(folder, index), rows, expert.cost)
    header = {"identity": manifest.identity, "expert": about, "rows": rows}
    write_tensors(shard(folder, index), {"theta": theta}, header)


def read_expert(folder: Path, manifest: Manifest, index: int) -> Expert:
    """The description in a trajectory's file; the vectors are not read, but their shape is checked.

    Raises ``MissingFile`` if there is none, and ``DamagedFile`` if it does not belong to this store.
    """
    path = shard(folder, index)
    with _reading(path, manifest):
        with open_tensors(path) as file:
            header, shape = file.metadata() or {}, file.get_slice("theta").get_shape()
        if header.get("identity") != manifest.identity:
            raise ValueError("it belongs to another store")
        if tuple(shape) != (expected := (len(manifest.checkpoints), manifest.size)):
            raise ValueError(f"it has shape {tuple(shape)}, not {expected}")
        expert = TypeAdapter(Expert).validate_json(header.get("expert", ""))
        return replace(expert, cost=read_cost(path, header.get("rows", "")) or expert.cost)


@contextmanager
def _reading(path: Path, manifest: Manifest) -> Iterator[None]:
    """Add to errors the command that trains what is missing or damaged; other read errors are passed on."""
    try:
        yield
    except MissingFile as error:
        raise MissingFile(
            f"{path} is not a complete trajectory (the file is missing): {_again(path, manifest)}"
        ) from error
    except DamagedFile as error:
        raise _broken(path, manifest, f"it {error.problem}") from error
    except AttarError:
        raise
    except ValueError as error:
        raise _broken(path, manifest, " ".join(str(error).split())) from error


def _listed(times: tuple[float, ...]) -> str:
    return ", ".join(f"{time:.3g}" for time in times[:4]) + (f", …, {times[-1]:g}" if len(times) > 4 else "")


def _broken(path: Path, manifest: Manifest, reason: str) -> DamagedFile:
    return DamagedFile(path, f"is not a complete trajectory ({reason})", f"move it away and {_again(path, manifest)}")


def _again(path: Path, manifest: Manifest) -> str:
    command = f"{manifest.command} -o {shlex.quote(str(path.parent))}"
    return f"run `{command}` again, which trains only what is missing."
