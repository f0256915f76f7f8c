"""Observers of a condensation: each takes an iterator of steps, does one thing at each step and yields it on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from torch import Tensor

from attar.condense.driver import Step
from attar.condense.film import Film, moments, places
from attar.core.errors import Diverged, require
from attar.core.files import read_bytes, unwritten, write_text
from attar.core.signals import held
from attar.data import Data

Observer = Callable[[Iterable[Step]], Iterator[Step]]

SECONDS = 30.0  #: between two checkpoints, unless said otherwise


def checkpoint(steps: Iterable[Step], path: Path, every: int | None = 100, seconds: float = SECONDS) -> Iterator[Step]:
    """Save the run at regular times, at the end, when a signal ends it (``core/signals.py``), and when it diverges.

    Args:
        steps: The steps of the run.
        path: The file.
        every: Steps between two saves; None for times only.
        seconds: Seconds between two saves.
    """
    saved, last = time.monotonic(), None
    with held() as stop:
        try:
            for step in steps:
                last = step
                yield step
                due = step.number == step.total or (every is not None and step.number % every == 0)
                if due or stop.number is not None or time.monotonic() - saved > seconds:
                    step.run.save(path)
                    saved = time.monotonic()
                    stop.act(f"Stopped after step {step.number} of {step.total}; saved to {path}.")
        except Diverged as error:
            if last is None:
                raise
            kept = path.with_name(path.name + ".diverged")  # so that a corrected run does not resume it
            last.run.save(kept)
            path.unlink(missing_ok=True)
            raise Diverged(f"{error} The last good state, step {last.number}, is in {kept}.") from error


def log(steps: Iterable[Step], path: Path) -> Iterator[Step]:
    """Append one JSON line per step; when a run is resumed, lines of steps that it repeats are removed first."""
    file = None
    try:
        for step in steps:
            try:
                if file is None:
                    _keep_before(path, step.number)
                    file = path.open("a", encoding="utf-8")
                file.write(json.dumps({"step": step.number, "loss": step.loss, **step.metrics}) + "\n")
                file.flush()
            except OSError as error:
                raise unwritten(path, error) from error
            yield step
    finally:
        if file is not None:
            file.close()


def validate(steps: Iterable[Step], score: Callable[[Data], float], every: int) -> Iterator[Step]:
    """Add the validation score of the synthetic examples, computed every ``every`` steps and at the end.

    In between, the latest is shown, which a resumed run still has.
    """
    for step in steps:
        if step.number % every == 0 or step.number == step.total:
            step.run.scores["validation"] = score(step.run.examples)
        yield step._replace(metrics={**step.metrics, **step.run.scores})


def film(steps: Iterable[Step], path: Path, frames: int = 6) -> Iterator[Step]:
    """Save one example per class before the first step, at evenly spaced steps and at the end.

    The file is rewritten with every frame; when a run is resumed, frames of steps that it repeats are removed first.
    """
    kept: Film | None = None
    for step in steps:
        run = step.run
        if kept is None:
            due, shown = moments(step.total, frames), places(run.first, frames)
            start = Film(run.first.hard[shown].cpu(), {0: _shown(run.first, shown)}, step.total, run.identity)
            kept = start.joined(path, {moment for moment in due if moment < step.number})
            kept.save(path)
        if step.number in due:
            kept = kept.plus(step.number, _shown(run.examples, shown))
            kept.save(path)
        yield step


def tensorboard(steps: Iterable[Step], folder: Path) -> Iterator[Step]:
    """Write every number to TensorBoard event files (extra ``track``)."""
    require("tensorboard", "track")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for step in steps:
            for name, value in {"loss": step.loss, **step.metrics}.items():
                writer.add_scalar(name, value, step.number)
            yield step


def _shown(examples: Data, places: Tensor) -> Tensor:
    """Some of the examples in the units of the original data."""
    return examples.spec.stored(examples.x[places]).float().cpu()


def _keep_before(path: Path, number: int) -> None:
    lines = read_bytes(path).decode(errors="replace").splitlines() if path.exists() else []
    write_text(path, "".join(f"{line}\n" for line in lines if _step_of(line) in range(number)))


def _step_of(line: str) -> int | None:
    try:
        number: int = json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):  # an incomplete line, left by a killed process
        return None
    return number
