"""Train experts and keep them in a store, so that nothing is trained twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from attar.core import budget
from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import set_aside
from attar.core.lock import in_turn, made
from attar.core.signals import require_seconds
from attar.data import Data, Split
from attar.data.load import Source, loaded
from attar.engine.pool import LOCAL, Engine, Where, run_all
from attar.experts.find import home
from attar.experts.manifest import DTYPES, Expert, Manifest
from attar.experts.progress import Watch, watched
from attar.experts.schedule import SMALL, Schedule
from attar.experts.store import Trajectories, read_expert
from attar.experts.trajectory import Work, checkpoint, grow
from attar.nets import Network
from attar.nets import network as build_network
from attar.nets.calibrate import decide
from attar.nets.fast.modes import AUTO, MODES, NONE


def experts(
    data: Source | Data | Split,
    network: str | Network | Callable[[], nn.Module] | None = None,
    schedule: Schedule = SMALL,
    *,
    folder: str | Path | None = None,
    root: str | Path | None = None,
    workers: int = 1,
    engine: Engine | Where = "local",
    device: torch.device | str | None = None,
    accelerate: str = NONE,
    checkpoint_every: float | None = None,
    watch: Watch | None = None,
) -> Trajectories:
    """Train networks on the full data and keep their parameters on the way, for methods that learn from them.

    Nothing is trained twice: an interrupted build resumes from where it was saved, with exactly the same result, and a
    request for more trajectories trains only the missing ones. Signals that end the program save it first.

    Args:
        data: Anything that ``attar.load`` takes; or a ``Split``, on whose validation set every finished trajectory is
            scored; or the training data itself.
        network: A name, a ``Network``, or a module factory, which is trained in this process only; by default a small
            network for the data.
        schedule: Number of trajectories, epochs, checkpoints and training settings.
        folder: Folder for the trajectories, one file each; by default one under ``root``, found again by content.
        root: Folder of all stores; by default ``$ATTAR_EXPERTS``, else ``~/.cache/attar/experts``.
        workers: Processes that train at the same time; the cores are divided among them. With more than one, a script
            must be guarded by ``if __name__ == "__main__"``.
        engine: ``local``, or ``ray`` (an extra); or an ``attar.Engine``, which has the workers, too.
        device: Where to train; by default the data's device.
        accelerate: How gradients are computed, as for ``attar.reduce``; with ``auto``, experts that exist go on as they
            began.
        checkpoint_every: Seconds between two saves of a trajectory in training; by default after every epoch, and every
            30 seconds within longer ones.
        watch: Called with the progress about once per second, from a thread.
    """
    given = loaded(data, device)
    train, val = (given.train, given.val) if isinstance(given, Split) else (given, None)
    net = build_network(network, train.spec)
    chosen = Engine.of(engine, workers).at_most(schedule.trajectories)
    if net.name.startswith("custom:"):
        chosen = LOCAL  # the user's own function may not be picklable
    wanted = Manifest.of(schedule, train, net)
    if accelerate == AUTO:
        accelerate = _began(wanted, folder, root) or AUTO
    wanted = replace(wanted, accelerate=decide(accelerate, net, train, schedule.training, chosen.workers))
    place = home(wanted, root) if folder is None else Path(folder)
    _require_room(wanted, place)
    with in_turn(made(place)):  # another process that asks for the same finds it finished
        manifest = _open(place, wanted)
        work = Work(train, val, net, manifest, place, require_seconds(checkpoint_every))
        done = _finished(place, manifest)
        _record(place, manifest, done)
        missing = [index for index in range(manifest.trajectories) if index not in done]
        with watched(work, missing, watch):
            for index, expert in run_all(grow, work, missing, chosen.at_most(len(missing))):
                done[index] = expert
                _record(place, manifest, done)
    return Trajectories.open(place, schedule.trajectories)


def _began(wanted: Manifest, folder: str | Path | None, root: str | Path | None) -> str | None:
    """The acceleration of the experts that exist; None if there are none."""
    tries = [replace(wanted, accelerate=mode) for mode in (NONE, *MODES)]
    for place in [home(tried, root) for tried in tries] if folder is None else [Path(folder)]:
        with suppress(MissingFile):
            return Manifest.load(place).accelerate
    return None


def _require_room(wanted: Manifest, place: Path) -> None:
    """Refuse experts of which one does not fit into memory, or those to train not on the disk."""
    kept = 1 + wanted.epochs + (wanted.epoch // wanted.every if wanted.every else 0)
    each = kept * wanted.size * DTYPES[wanted.dtype].itemsize
    what = f"A trajectory of {wanted.epochs:,} epochs of {wanted.network} with {wanted.size:,} parameters"
    budget.require_memory(each, what, "ask for fewer epochs, or for a smaller network")
    there = 0
    with suppress(OSError):  # a folder that cannot be listed now is reported when its files are read
        there = len(list(place.glob("trajectory-*.safetensors")))
    what = f"Keeping {wanted.trajectories:,} trajectories of {wanted.epochs:,} epochs of {wanted.network}"
    remedy = "ask for fewer trajectories or epochs, or for --dtype float16, or choose another place"
    budget.require_disk(each * max(0, wanted.trajectories - there), place, what, remedy)


def _open(folder: Path, wanted: Manifest) -> Manifest:
    """The folder's manifest, extended to the trajectories asked for; another store is refused."""
    try:
        found = Manifest.load(folder)
    except MissingFile:
        wanted.save(folder)
        return wanted
    if found.identity != wanted.identity:
        raise AttarError(
            f"{folder} holds experts made by `{found.command}` on data with fingerprint {found.fingerprint}, but "
            f"asked for is `{wanted.command}` on {wanted.fingerprint}: choose another folder."
        )
    if found.trajectories < wanted.trajectories:
        found = replace(found, trajectories=wanted.trajectories)
        found.save(folder)
    return found


def _finished(folder: Path, manifest: Manifest) -> dict[int, Expert]:
    """The finished trajectories by number; a file that does not belong to this store is renamed.

    A file that cannot be read ends the build: it may be intact, and must not be replaced.
    """
    found = {}
    for index in range(manifest.trajectories):
        try:
            found[index] = read_expert(folder, manifest, index)
            checkpoint(folder, index).unlink(missing_ok=True)  # left by a run that was killed right after the end
        except MissingFile:
            continue
        except DamagedFile as error:
            set_aside(error, "the trajectory is trained again")
    return found


def _record(folder: Path, manifest: Manifest, done: Mapping[int, Expert]) -> None:
    replace(manifest, experts=tuple(done[index] for index in sorted(done))).save(folder)
