"""Which acceleration this machine gains by: a few seconds of gradients, in child processes, which may be killed.

Some processors kill a process that computes in bfloat16, compiling needs a compiler, and both can be slower than
float32 or wrong. So a child process takes gradients of the very network, in both ways by turns, and says what it found.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from attar.core.errors import AttarError, unknown
from attar.core.forecast import lap, spread
from attar.data import Data
from attar.nets.fast.modes import AUTO, COMPILED, HALF, MODES, NONE, current, using
from attar.nets.network import Network
from attar.nets.objective import Objective
from attar.nets.train import Training

SECONDS = 1.0  #: of gradients that are timed by each child
LIMIT = 90.0  #: seconds until a child is given up; the first compilation on a machine took 45
WINS = 1.1  #: times as fast as float32 at least
HOPELESS = 0.5  #: times as fast on a part of the batch, below which the whole batch is not tried
#: Largest relative difference of the loss and of the gradient, in norm. That of bfloat16 gradients was 2 to 4 % with an
#: MLP and a ConvNet, far below the noise of a minibatch, and 40 % with a ResNet; compiled code only rounds differently.
AGREES = {HALF: 0.05, COMPILED: 1e-4}


class Found(NamedTuple):
    """What one mode is worth."""

    faster: float  #: seconds of float32 / seconds of the mode, the median of turns
    setup: float  #: seconds of the first gradient
    value: float  #: relative difference of the loss from that in float32
    gradient: float  #: relative difference of the gradient, in norm


class Wanted(NamedTuple):
    """What a child is to try."""

    mode: str
    network: Network
    data: Data  #: one batch
    loss: str
    threads: int


def decide(wanted: str, network: Network, data: Data, training: Training, workers: int = 1) -> str:
    """The mode to compute in.

    Args:
        wanted: ``none`` for that of the surrounding code; a mode, which is an error where it cannot be used; or
            ``auto`` for the fastest that agrees with float32, with a warning that says which and why.
        network: The network.
        data: The examples that it is trained on.
        training: The batch and the loss.
        workers: Processes that will compute at the same time.
    """
    if wanted == NONE:
        return current()
    if wanted not in (AUTO, *MODES):
        raise unknown("acceleration", wanted, (NONE, AUTO, *MODES))
    batch = data[spread(torch.arange(len(data), device=data.device), training.batch)]
    threads = torch.get_num_threads() if workers == 1 else max(1, (os.cpu_count() or 1) // workers)
    tries = {mode: Wanted(mode, network, batch, training.loss, threads) for mode in MODES}
    if wanted != AUTO:
        if problem := _problem(wanted, tried(tries[wanted])):
            raise AttarError(
                f"{wanted} cannot be used here, because {problem}: leave --accelerate out, or use --accelerate auto."
            )
        return wanted
    found = {mode: tried(tries[mode]) for mode in (HALF, COMPILED)}
    if all(not _loss(mode, result) for mode, result in found.items()):
        found[MODES[-1]] = tried(tries[MODES[-1]])
    return _best(found)


def tried(wanted: Wanted) -> Found | str:
    """What a child process found, or why it found nothing."""
    try:
        given = pickle.dumps(wanted)
    except (pickle.PicklingError, AttributeError, TypeError):
        return "the network cannot be sent to another process, which one that a module defines by name can"
    paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    try:
        child = subprocess.run(
            [sys.executable, "-m", "attar.nets.calibrate"],
            input=given,
            capture_output=True,
            timeout=LIMIT,
            env=os.environ | {"PYTHONPATH": paths},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a gradient takes longer than {LIMIT:.0f} seconds"
    if child.returncode < 0:
        return f"it kills the process (signal {-child.returncode})"
    lines = child.stdout.decode(errors="replace").splitlines()
    if child.returncode or not lines:
        said = child.stderr.decode(errors="replace").strip().splitlines()
        return f"it fails ({said[-1] if said else f'exit code {child.returncode}'})"
    return Found(**json.loads(lines[-1]))


def _problem(mode: str, found: Found | str) -> str:
    """Why a mode cannot be used; empty if it can."""
    if isinstance(found, str):
        return found
    most = max(limit for part, limit in AGREES.items() if part in mode)
    if max(found.value, found.gradient) <= most:  # not so if one is not a number
        return ""
    return f"its loss differs from float32 by {found.value:.1%} and its gradient by {found.gradient:.1%}"


def _loss(mode: str, found: Found | str) -> str:
    """Why a mode is not to be chosen; empty if it wins and agrees."""
    if isinstance(found, Found) and found.faster < WINS:
        return f"{found.faster:.2g} times as fast as float32"
    return _problem(mode, found)


def _best(found: dict[str, Found | str]) -> str:
    """The fastest mode that agrees, or none; a warning says what was found."""
    lost = {mode: _loss(mode, result) for mode, result in found.items()}
    won = {mode: result for mode, result in found.items() if isinstance(result, Found) and not lost[mode]}
    best = max(won, key=lambda mode: won[mode].faster, default=NONE)
    said = [
        f"{mode}: {lost[mode] or f'{won[mode].faster:.2g} times as fast, after {won[mode].setup:.0f} s of set-up'}"
        for mode in found
    ]
    use = f"Gradients are computed with {best}" if best != NONE else "No acceleration is used"
    warnings.warn(f"{use} ({'; '.join(said)}).", stacklevel=3)
    return best


def measured(wanted: Wanted) -> Found:
    """Compare gradients in a mode with those in float32, by turns, in this process."""
    torch.set_num_threads(wanted.threads)
    if COMPILED not in wanted.mode:  # which would be compiled again for the whole batch
        part = _compared(wanted, wanted.data[: max(1, len(wanted.data) // 32)], 0.0)
        if part.faster < HOPELESS:
            return part
    return _compared(wanted, wanted.data, SECONDS)


def _compared(wanted: Wanted, batch: Data, seconds: float) -> Found:
    objective = Objective(wanted.network, wanted.loss)
    theta = wanted.network.init(torch.Generator().manual_seed(0)).to(batch.device)

    def gradient(mode: str) -> tuple[float, Tensor, Tensor]:
        with using(mode), lap(batch.device) as timed:
            value, slope = objective.value_and_gradient(theta, batch)
        return timed.seconds, value, slope

    _, value, slope = gradient(NONE)
    begin = time.perf_counter()
    _, other, moved = gradient(wanted.mode)
    setup, ratios, spent = time.perf_counter() - begin, list[float](), 0.0
    while not ratios or spent < seconds:
        plain, quick = gradient(NONE)[0], gradient(wanted.mode)[0]
        ratios.append(plain / quick)
        spent += plain + quick
    off = (other - value).abs() / value.abs(), (moved - slope).norm() / slope.norm()
    return Found(median(ratios), setup, *(float(part) for part in off))


if __name__ == "__main__":
    found = measured(pickle.load(sys.stdin.buffer))  # of the parent, which is this program
    print(json.dumps(found._asdict()))
