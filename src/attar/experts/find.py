"""Find experts that were trained before."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from attar.core.errors import AttarError, MissingFile
from attar.core.text import duration
from attar.data import Data
from attar.experts.manifest import Manifest
from attar.experts.progress import cores, estimate
from attar.experts.schedule import SMALL, Schedule
from attar.experts.store import Trajectories
from attar.nets import Network
from attar.nets.fast.modes import MODES, NONE


def find(data: Data, network: Network, schedule: Schedule = SMALL, *, root: str | Path | None = None) -> Trajectories:
    """The experts that ``experts`` made with these arguments; if there are none, an error says how to make them."""
    wanted = Manifest.of(schedule, data, network)
    for mode in (NONE, *MODES):
        place = home(replace(wanted, accelerate=mode), root)
        with suppress(MissingFile):
            if Manifest.load(place).trajectories >= schedule.trajectories:
                return Trajectories.open(place, schedule.trajectories)
    raise missing(data, network, schedule)


def missing(data: Data, network: Network, schedule: Schedule = SMALL) -> AttarError:
    """The error for missing experts: the command that makes them, and how long it takes on this machine."""
    wanted = Manifest.of(schedule, data, network)
    took = duration(estimate(data, network, wanted.training) * schedule.trajectories / cores())
    return AttarError(
        f"There are no experts of {network.name} on {data.spec.name!r}: run `{wanted.command}`, or attar.experts in "
        f"Python, which takes about {took} on this machine."
    )


def home(manifest: Manifest, root: str | Path | None = None) -> Path:
    """The default folder of a store; its name holds the store's identity."""
    if manifest.network.startswith("custom:"):
        raise AttarError("A module of your own has no name to find experts by: give attar.experts a folder.")
    place = Path(root or os.environ.get("ATTAR_EXPERTS") or "~/.cache/attar/experts").expanduser()
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in manifest.data)
    return place / f"{plain}-{manifest.network}-{manifest.identity[:16]}"
