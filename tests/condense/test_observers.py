import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attar.condense.contract import Descent
from attar.condense.dm import DM
from attar.condense.driver import Condensation, Step
from attar.condense.observers import checkpoint, film, log, tensorboard, validate
from attar.condense.source import Pixels
from attar.core.errors import Diverged, MissingExtra
from attar.core.files import read_tensors
from tests.known import gaussian_task, generator, python

TASK = gaussian_task(8, network="mlp-d1w8")


def run(steps: int = 6, lr: float = 0.1) -> Condensation:
    source = Pixels(TASK.data[:3])
    return Condensation(DM(batch=4, strategy="none"), TASK, source, Descent(steps=steps, lr=lr), generator(1))


def finish(steps: Iterable[Step]) -> None:
    for _ in steps:
        pass


def undisturbed(steps: int = 6) -> Tensor:
    condensation = run(steps)
    finish(condensation)
    return condensation.examples.x


def saved(path: Path) -> int | None:
    return json.loads(read_tensors(path)[1]["progress"])["number"] if path.exists() else None


def test_a_run_is_saved_every_so_many_steps_and_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    seen = [saved(path) for _ in checkpoint(run(5), path, every=2)]
    assert seen == [None, None, 2, 2, 4]
    assert saved(path) == 5


def test_a_run_is_saved_every_so_many_seconds(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    assert [saved(path) for _ in checkpoint(run(3), path, every=1000, seconds=0)] == [None, 1, 2]
    timed = tmp_path / "timed.safetensors"
    assert [saved(timed) for _ in checkpoint(run(3), timed, every=None, seconds=1000)] == [None, None, None]
    assert saved(timed) == 3
    later = tmp_path / "later.safetensors"
    assert [saved(later) for _ in checkpoint(run(3), later, every=1000, seconds=1000)] == [None, None, None]


def test_a_checkpointed_run_ends_in_the_same_bits(tmp_path: Path) -> None:
    condensation = run()
    finish(checkpoint(condensation, tmp_path / "state.safetensors", every=1))
    assert torch.equal(condensation.examples.x, undisturbed())


def test_a_run_that_diverges_leaves_its_last_good_state(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    with pytest.raises(Diverged, match=r"learning rate below 1e\+30.*The last good state, step \d+, is in"):
        finish(checkpoint(run(50, lr=1e30), path, every=1000))
    assert not path.exists()  # the mended run starts anew
    path = tmp_path / "state.safetensors.diverged"
    good = saved(path)
    assert good is not None
    assert 0 < good < 50
    again = run(50, lr=1e30)
    again.resume(path)
    with pytest.raises(Diverged, match=f"Step {good + 1}: "):
        finish(again)


def test_a_run_that_diverges_at_once_writes_nothing(tmp_path: Path) -> None:
    condensation = run()
    with torch.no_grad():
        condensation.source.x.fill_(float("nan"))  # type: ignore[operator]
    with pytest.raises(Diverged, match="Step 1: the loss is nan"):
        finish(checkpoint(condensation, tmp_path / "state.safetensors", every=1))
    assert not list(tmp_path.iterdir())


def test_checkpoints_work_outside_the_main_thread(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    thread = threading.Thread(target=lambda: finish(checkpoint(run(), path, every=2)))
    thread.start()
    thread.join()
    assert saved(path) == 6


SIGNAL = """
import os, signal, sys
from pathlib import Path
from attar.condense.observers import checkpoint
from attar.core.signals import raised
from tests.condense.test_observers import run
path, at, number, presses = Path(sys.argv[1]), *map(int, sys.argv[2:])
before = signal.getsignal(number)
try:
    with raised():
        for step in checkpoint(run(), path, every=1000):
            if step.number == at:
                for _ in range(presses):
                    os.kill(os.getpid(), number)
except KeyboardInterrupt as stopped:
    print(type(stopped).__name__, stopped.number, stopped, flush=True)
assert signal.getsignal(number) is before
"""


@pytest.mark.parametrize(("at", "number"), [(1, signal.SIGHUP), (3, signal.SIGTERM), (6, signal.SIGINT)])
def test_a_signal_saves_the_step_under_way_and_stops(at: int, number: int, tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    out, err = python(SIGNAL, path, at, int(number), 1).communicate(timeout=600)
    assert out == f"Interrupted {int(number)} Stopped after step {at} of 6; saved to {path}.\n", err
    assert not err
    resumed = run()
    resumed.resume(path)
    assert resumed.number == at
    finish(resumed)
    assert torch.equal(resumed.examples.x, undisturbed())


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    out, err = python(SIGNAL, tmp_path / "state.safetensors", 3, int(signal.SIGINT), 2).communicate(timeout=600)
    assert out == "Interrupted 2 \n", err
    assert not list(tmp_path.iterdir())


def lines(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_log_has_one_line_a_step(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "run.jsonl"
    steps = [(step.number, step.loss, step.metrics) for step in log(run(), path)]
    assert lines(path) == [{"step": number, "loss": loss, **metrics} for number, loss, metrics in steps]


@pytest.mark.parametrize(
    "half", ["", '{"step": 6, "lo', '{"step": 6, "loss": 0.5}', "\n", '{"step": 6, "loss": 1e-\n', "[1]}\n"]
)
def test_the_log_of_a_resumed_run_is_that_of_an_undisturbed_one(half: str, tmp_path: Path) -> None:
    path, state = tmp_path / "run.jsonl", tmp_path / "state.safetensors"
    finish(log(run(), tmp_path / "whole.jsonl"))
    first = run()
    for step in islice(log(first, path), 5):
        if step.number == 3:
            first.save(state)
    with path.open("a") as file:
        file.write(half)  # what a kill leaves
    resumed = run()
    resumed.resume(state)
    finish(log(resumed, path))
    assert path.read_text() == (tmp_path / "whole.jsonl").read_text()


def test_the_log_of_a_new_run_replaces_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    finish(log(run(6), path))
    finish(log(run(2), path))
    assert [line["step"] for line in lines(path)] == [1, 2]


def test_a_log_line_is_on_the_disk_before_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert [len(lines(path)) for _ in log(run(3), path)] == [1, 2, 3]


def test_validation_is_computed_now_and_then_at_the_end_and_disturbs_nothing(tmp_path: Path) -> None:
    condensation = run(5)
    asked: list[Tensor] = []

    def score(examples: object) -> float:
        asked.append(condensation.examples.x)
        torch.rand(3)  # its own randomness is no matter
        return float(len(asked))

    seen = [step.metrics.get("validation") for step in validate(condensation, score, every=2)]
    assert seen == [None, 1, 1, 2, 3]
    assert torch.equal(condensation.examples.x, undisturbed(5))
    assert torch.equal(asked[-1], undisturbed(5))


def test_a_resumed_run_still_has_its_latest_validation_score(tmp_path: Path) -> None:
    def watched(condensation: Condensation, name: str, factor: float = 1.0) -> Iterator[Step]:
        steps = checkpoint(condensation, tmp_path / f"{name}.safetensors", every=1)
        scored = validate(steps, lambda examples: factor * float(examples.x.mean()), every=3)
        return log(scored, tmp_path / f"{name}.jsonl")

    finish(watched(run(), "whole"))
    for _ in islice(watched(run(), "killed"), 5):
        pass
    resumed = run()
    resumed.resume(tmp_path / "killed.safetensors")
    assert resumed.number == 4  # the score is of step 3
    finish(watched(resumed, "killed"))
    assert lines(tmp_path / "killed.jsonl") == lines(tmp_path / "whole.jsonl")
    assert ["validation" in line for line in lines(tmp_path / "killed.jsonl")] == [False, False, *[True] * 4]
    finish(watched(run(), "odd", factor=float("nan")))
    odd = run()
    odd.resume(tmp_path / "odd.safetensors")  # a score that is no number spoils no checkpoint
    assert str(odd.scores["validation"]) == "nan"


def test_observers_pass_on_every_step_in_any_order(tmp_path: Path) -> None:
    observers: list[Callable[[Iterable[Step]], Iterator[Step]]] = [
        partial(checkpoint, path=tmp_path / "state.safetensors", every=2),
        partial(log, path=tmp_path / "run.jsonl"),
        partial(film, path=tmp_path / "film.safetensors"),
        partial(validate, score=lambda examples: 0.5, every=1),
    ]
    for order in (observers, observers[::-1]):
        condensation = run()
        steps: Iterator[Step] = iter(condensation)
        for observe in order:
            steps = observe(steps)
        assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6]
        assert torch.equal(condensation.examples.x, undisturbed())


def test_tensorboard_gets_every_number(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra 'track' is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    losses = [step.loss for step in tensorboard(run(3), tmp_path)]
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == [1, 2, 3]
    assert [event.value for event in events.Scalars("loss")] == pytest.approx(losses)
    assert len(events.Scalars("gap")) == 3


def test_without_tensorboard_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorboard", None)
    with pytest.raises(MissingExtra, match=r"attar\[track\]"):
        finish(tensorboard(run(1), tmp_path))
