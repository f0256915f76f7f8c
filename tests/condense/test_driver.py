"""The loop is exact: its updates are the optimiser's, and what it saves is all that the next step needs."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest
import torch
from torch import Generator, Tensor

from attar.condense.contract import Descent, Loss, Task
from attar.condense.driver import Condensation
from attar.condense.source import Pixels
from attar.core.errors import AttarError, Diverged
from attar.core.files import read_tensors, write_tensors
from attar.data import Data
from tests.known import gaussian_task, generator

TASK = gaussian_task()


class Memory(NamedTuple):
    """One carried value of every kind that a state may hold."""

    last: Tensor
    calls: int
    seen: float
    odd: bool


class Noisy:
    """Pull every example to a moving random target: a method that uses the state and the generator in every step."""

    descent: ClassVar[Descent] = Descent()

    def __init__(self, scale: Callable[[int], float] = lambda call: 1.0) -> None:
        self.scale = scale

    def init(self, task: Task, gen: Generator) -> Memory:
        return Memory(torch.randn(task.data.shape, generator=gen), 0, 0.25, False)

    def loss(self, syn: Data, state: Memory, task: Task, gen: Generator) -> Loss:
        target = 0.9 * state.last + 0.1 * torch.randn(task.data.shape, generator=gen)
        value = self.scale(state.calls) * (syn.x - target).square().sum() / 2
        metrics = {"seen": torch.tensor(state.seen)}
        return Loss(value, Memory(target, state.calls + 1, state.seen / 2, not state.odd), metrics)


class Still:
    """Half the squared distance to zero, so that the gradient is the examples."""

    descent: ClassVar[Descent] = Descent()

    def init(self, task: Task, gen: Generator) -> tuple[()]:
        return _Nothing()

    def loss(self, syn: Data, state: tuple[()], task: Task, gen: Generator) -> Loss:
        return Loss(syn.x.square().sum() / 2, state, {})


class _Nothing(NamedTuple):
    """No state."""


def start() -> Data:
    return TASK.data[:4]


def run(descent: Descent, method: Noisy | Still | None = None, identity: str = "") -> Condensation:
    return Condensation(method or Noisy(), TASK, Pixels(start()), descent, generator(3), identity)


def finish(condensation: Condensation) -> Tensor:
    for _ in condensation:
        pass
    return condensation.examples.x


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("stop", [1, 4, 7])
def test_a_fresh_run_that_resumes_ends_in_the_same_bits(
    optimiser: str, schedule: str, momentum: float, stop: int, tmp_path: Path
) -> None:
    descent = Descent(steps=7, optimiser=optimiser, schedule=schedule, momentum=momentum, lr=0.05)  # type: ignore[arg-type]
    undisturbed = finish(run(descent))
    first = run(descent)
    list(islice(first, stop))
    first.save(tmp_path / "state.safetensors")
    second = run(descent)
    torch.rand(1, generator=second.gen)  # whatever its generator did before is of no matter
    second.resume(tmp_path / "state.safetensors")
    assert second.number == stop
    assert second.state._replace(last=0) == first.state._replace(last=0)
    assert [type(value) for value in second.state] == [Tensor, int, float, bool]
    assert torch.equal(finish(second), undisturbed)


def test_saving_does_not_disturb_the_run(tmp_path: Path) -> None:
    watched = run(Descent(steps=5))
    for _ in watched:
        watched.save(tmp_path / "state.safetensors")
        _ = watched.examples
    assert torch.equal(watched.examples.x, finish(run(Descent(steps=5))))


def test_a_step_of_sgd_is_the_learning_rate_times_the_gradient() -> None:
    assert torch.allclose(finish(run(Descent(steps=3, lr=0.1, momentum=0), Still())), start().x * 0.9**3)


def test_momentum_adds_up_earlier_gradients() -> None:
    # x1 = x − 0.1 x, v2 = 0.5 x + x1, x2 = x1 − 0.1 v2
    assert torch.allclose(finish(run(Descent(steps=2, lr=0.1, momentum=0.5), Still())), start().x * (0.9 - 0.14))


def test_the_cosine_schedule_starts_at_the_learning_rate_and_halves_it_midway() -> None:
    descent = Descent(steps=2, lr=0.1, momentum=0, schedule="cosine")
    assert torch.allclose(finish(run(descent, Still())), start().x * (1 - 0.1) * (1 - 0.05))


def test_adam_first_moves_every_number_by_the_learning_rate() -> None:
    moved = start().x - finish(run(Descent(steps=1, lr=0.01, optimiser="adam"), Still()))
    assert torch.allclose(moved, 0.01 * start().x.sign(), atol=1e-5)


def test_a_long_gradient_is_clipped_and_a_short_one_is_not() -> None:
    norm = start().x.norm().item()
    clipped = start().x - finish(run(Descent(steps=1, lr=1.0, momentum=0, clip=0.5), Still()))
    assert clipped.norm().item() == pytest.approx(0.5, rel=1e-4)
    assert torch.allclose(clipped / 0.5, start().x / norm, atol=1e-4)
    free = start().x - finish(run(Descent(steps=1, lr=1.0, momentum=0, clip=2 * norm), Still()))
    assert torch.allclose(free, start().x)


def test_steps_are_numbered_and_carry_loss_and_metrics() -> None:
    steps = list(run(Descent(steps=3), Noisy()))
    assert [step.number for step in steps] == [1, 2, 3]
    assert {step.total for step in steps} == {3}
    assert [step.metrics["seen"] for step in steps] == [0.25, 0.125, 0.0625]
    assert all(isinstance(step.loss, float) for step in steps)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_the_run_in_its_last_good_state(bad: float, tmp_path: Path) -> None:
    descent, path = Descent(steps=6, lr=0.05), tmp_path / "state.safetensors"
    broken = run(descent, Noisy(lambda call: bad if call == 3 else 1.0))
    with pytest.raises(Diverged, match=r"Step 4: .*learning rate below 0\.05"):
        finish(broken)
    good = run(descent)
    list(islice(good, 3))
    assert torch.equal(broken.examples.x, good.examples.x)
    broken.save(path)
    mended = run(descent)
    mended.resume(path)
    assert mended.number == 3
    assert torch.equal(finish(mended), finish(run(descent)))


def test_a_finite_loss_with_an_infinite_gradient_stops_too() -> None:
    class Kink(Still):
        def loss(self, syn: Data, state: tuple[()], task: Task, gen: Generator) -> Loss:
            return Loss((syn.x - syn.x.detach()).abs().sqrt().sum(), state, {})  # √0 is 0, its slope is not finite

    with pytest.raises(Diverged, match="the loss is 0 and its gradient has norm"):
        finish(run(Descent(steps=1), Kink()))


def test_a_checkpoint_of_another_recipe_is_refused(tmp_path: Path) -> None:
    run(Descent(), identity="one").save(tmp_path / "state.safetensors")
    with pytest.raises(AttarError, match="is a checkpoint of another recipe: move it away or choose another output"):
        run(Descent(), identity="two").resume(tmp_path / "state.safetensors")


@pytest.mark.parametrize("name", ["source.x", "gen", "state.calls", "state.last"])
def test_a_checkpoint_that_lacks_a_part_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    run(Descent()).save(path)
    tensors, header = read_tensors(path)
    write_tensors(path, {key: value for key, value in tensors.items() if key != name}, header)
    with pytest.raises(AttarError, match="corrupt or incompatible"):
        run(Descent()).resume(path)


def test_a_checkpoint_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    run(Descent()).save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(AttarError, match="not a complete safetensors file"):
        run(Descent()).resume(path)


def test_examples_are_a_copy() -> None:
    condensation = run(Descent(steps=1))
    before = condensation.examples.x
    finish(condensation)
    assert torch.equal(before, start().x)
    assert not condensation.examples.x.requires_grad
