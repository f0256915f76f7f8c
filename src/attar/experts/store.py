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

from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import open_tensors, write_tensors
from attar.experts.manifest import Expert, Manifest
from attar.nets import Network


class Trajectories:
    """Parameter vectors of networks during training on the full data.

    The vectors stay on disk and are read one at a time, so memory does not grow with the store. Vector 0 of a
    trajectory is its initialisation, vector ``e`` is that after epoch ``e``.

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
        """Epochs per trajectory; there is one vector more."""
        return self.manifest.epochs

    @property
    def size(self) -> int:
        """Length of a vector, p."""
        return self.manifest.size

    def vector(self, trajectory: int, epoch: int) -> Tensor:
        """The parameters ``(p,)`` of one trajectory after one epoch, as float32; no other vector is read."""
        if not 0 <= trajectory < len(self):
            raise AttarError(f"There is no trajectory {trajectory}: the store has 0 to {len(self) - 1}.")
        if not 0 <= epoch <= self.epochs:
            raise AttarError(
                f"There is no epoch {epoch}: the trajectories go from 0, their initialisation, to {self.epochs}; "
                "choose an earlier one, or train longer with `attar experts --epochs`."
            )
        path = shard(self.folder, trajectory)
        with _reading(path, self.manifest):
            with open_tensors(path) as file:
                found: Tensor = file.get_slice("theta")[epoch].to(torch.float32, copy=True)
            if found.shape != (self.size,) or not bool(torch.isfinite(found).all()):
                raise ValueError(f"epoch {epoch} is not {self.size} finite numbers")
        return found

    def draw(self, gen: Generator, first: int = 0, last: int | None = None) -> tuple[int, int]:
        """A random trajectory, and a random epoch from ``first`` to ``last`` (both included; by default the last)."""
        last = self.epochs if last is None else last
        if not 0 <= first <= last <= self.epochs:
            raise AttarError(
                f"Epochs {first} to {last} were asked for, but the trajectories have 0 to {self.epochs}: choose from "
                "these, or train longer with `attar experts --epochs`."
            )
        trajectory = int(torch.randint(len(self), (), generator=gen, device=gen.device))
        return trajectory, first + int(torch.randint(last - first + 1, (), generator=gen, device=gen.device))

    def pair(self, gen: Generator, ahead: int, last: int | None = None) -> tuple[tuple[int, int], Tensor, Tensor]:
        """A random trajectory and epoch from 0 to ``last``, its vector, and the vector ``ahead`` epochs later."""
        last = self.epochs - ahead if last is None else last
        if not 0 <= last <= self.epochs - ahead:
            raise AttarError(
                f"Epochs 0 to {last} and {ahead} ahead were asked for, but the trajectories end at {self.epochs}: "
                "start earlier, look less far ahead, or train longer with `attar experts --epochs`."
            )
        place = self.draw(gen, 0, last)
        return place, self.vector(*place), self.vector(place[0], place[1] + ahead)

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
    """Write one finished trajectory, ``(epochs + 1, p)``."""
    header = {"identity": manifest.identity, "expert": TypeAdapter(Expert).dump_json(expert).decode()}
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
        if tuple(shape) != (manifest.epochs + 1, manifest.size):
            raise ValueError(f"it has shape {tuple(shape)}, not {(manifest.epochs + 1, manifest.size)}")
        return TypeAdapter(Expert).validate_json(header.get("expert", ""))


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


def _broken(path: Path, manifest: Manifest, reason: str) -> DamagedFile:
    return DamagedFile(path, f"is not a complete trajectory ({reason})", f"move it away and {_again(path, manifest)}")


def _again(path: Path, manifest: Manifest) -> str:
    command = f"{manifest.command} -o {shlex.quote(str(path.parent))}"
    return f"run `{command}` again, which trains only what is missing."
