"""The manifest of a store of experts: the network, data and training that its trajectories came from."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from attar.core.cost import Cost
from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import read_json, write_json
from attar.data import Data
from attar.experts.schedule import SMALL, Schedule
from attar.nets import Network
from attar.nets.train import Training

MANIFEST = "manifest.json"
KEEP = "move it away and run the same `attar experts` command again, which keeps all matching trajectories."
DTYPES = {"float32": torch.float32, "float16": torch.float16}

# The fields of the first version, which always count in ``Manifest.identity``.
_MANIFEST = {"data", "fingerprint", "network", "shape", "classes", "size", "epochs", "seed", "dtype", "format"}
_MANIFEST |= {"training", "trajectories", "experts"}
_TRAINING = {"steps", "batch", "optimiser", "lr", "momentum", "weight_decay", "schedule", "augment", "loss"}


@dataclass(frozen=True, config=ConfigDict(extra="ignore"))
class Expert:
    """One finished trajectory; fields that later versions add are ignored, since the vectors are the same."""

    seed: int
    loss: float  #: mean over the last epoch
    accuracy: float | None  #: on validation data, if there was any
    cost: Cost = Field(default_factory=lambda: Cost())


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Manifest:
    """The description of a store: network, data and training."""

    data: str
    fingerprint: str
    network: str
    shape: tuple[int, ...]
    classes: int
    size: int  #: parameters, p
    epochs: int
    training: Training
    seed: int
    dtype: Literal["float32", "float16"]
    trajectories: int  #: number asked for
    experts: tuple[Expert, ...] = ()  #: those that are finished
    every: int = 0  #: steps between checkpoints within the first epoch; 0 if there are none
    format: Literal["attar-experts-1"] = "attar-experts-1"
    accelerate: str = "none"  #: half precision or compiled code that they were trained with

    @staticmethod
    def of(schedule: Schedule, data: Data, network: Network) -> Manifest:
        """The manifest of experts for this data and network."""
        epoch = max(1, len(data) // schedule.training.batch)
        return Manifest(
            data=data.spec.name,
            fingerprint=data.fingerprint,
            network=network.name,
            shape=network.shape,
            classes=network.classes,
            size=network.size,
            epochs=schedule.epochs,
            training=replace(schedule.training, steps=schedule.epochs * epoch),
            seed=schedule.seed,
            dtype=schedule.dtype,
            trajectories=schedule.trajectories,
            every=_every(schedule.every, epoch),
        )

    @property
    def epoch(self) -> int:
        """Steps per epoch."""
        return self.training.steps // self.epochs

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """The steps after which parameters are kept; 0 is the initialisation."""
        within = range(self.every, self.epoch, self.every) if self.every else ()
        return (0, *within, *range(self.epoch, self.training.steps + 1, self.epoch))

    @property
    def identity(self) -> str:
        """A hash of everything that determines the vectors; the number of trajectories does not count.

        A field that is added later, here or to ``Training``, counts only if it differs from its default, so that
        existing stores stay valid: the default must mean what was done before the field existed.
        """
        named = _counted(Manifest, replace(self, trajectories=0, experts=()), _MANIFEST)
        named["training"] = _counted(Training, self.training, _TRAINING)
        return hashlib.blake2b(json.dumps(named, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def command(self) -> str:
        """The command that makes this store."""
        plain = {f.name: getattr(self.training, f.name) for f in fields(Training)}
        usual = {f.name: getattr(SMALL.training, f.name) for f in fields(Training)}
        del plain["steps"]  # given by the epochs
        plain |= {"trajectories": self.trajectories, "epochs": self.epochs, "seed": self.seed, "dtype": self.dtype}
        plain |= {"every": self.every, "accelerate": self.accelerate}
        usual |= {"trajectories": SMALL.trajectories, "epochs": SMALL.epochs, "seed": SMALL.seed, "dtype": SMALL.dtype}
        usual |= {"every": _every(None, self.epoch), "accelerate": "none"}
        words = [w for k, v in plain.items() if v != usual[k] for w in (f"--{k.replace('_', '-')}", str(v))]
        return shlex.join(["attar", "experts", self.data, "--network", self.network, *words])

    def save(self, folder: Path) -> None:
        write_json(folder / MANIFEST, TypeAdapter(Manifest).dump_python(self, mode="json"))

    @staticmethod
    def load(folder: Path) -> Manifest:
        """Read and check the manifest of a store."""
        path = folder / MANIFEST
        try:
            return TypeAdapter(Manifest).validate_python(read_json(path))
        except MissingFile as error:
            raise MissingFile(
                f"There are no experts in {folder}: make them with `attar experts DATA --network NAME -o {folder}`."
            ) from error
        except DamagedFile as error:
            raise DamagedFile(path, error.problem, KEEP) from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            problem = f"is not a manifest of experts of this version of attar ({where}: {first['msg']})"
            raise DamagedFile(path, problem, KEEP) from error


def _every(asked: int | None, epoch: int) -> int:
    """The steps between checkpoints in an epoch of so many steps; 0 where there are none within it."""
    if asked is not None and asked > epoch:
        raise AttarError(f"every must lie in 0..{epoch}, the steps of an epoch, got {asked}.")
    every = max(1, epoch // 10) if asked is None else asked
    return every if every < epoch else 0


def _counted(kind: type[Any], value: Any, first: set[str]) -> dict[str, Any]:
    """The fields that count in an identity: those of the first version, and others that differ from their default."""
    whole = TypeAdapter(kind).dump_python(value, mode="json")
    changed = TypeAdapter(kind).dump_python(value, mode="json", exclude_defaults=True)
    return {name: found for name, found in whole.items() if name in first or name in changed}
