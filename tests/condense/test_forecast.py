"""Steps of condensations are rehearsed; those of these tests take the time that they say."""

from collections.abc import Callable

import pytest

import attar
from attar.condense.contract import Loss, NoState, Task
from attar.condense.dm import DM
from attar.condense.mnemonics import Mnemonics
from attar.condense.source import Synthetic
from attar.core.forecast import Order
from attar.plan import Plan
from tests.known import Clock, gaussians

DATA = gaussians(3000)


def plan(monkeypatch: pytest.MonkeyPatch, time: Callable[[int, int], float], order: Order, steps: int) -> Plan:
    """Matching of means whose step number s takes ``time(rows, s)``."""
    clock, done = Clock(monkeypatch), [0]

    def init(self: DM, task: Task, gen: object) -> NoState:
        clock.tick(0.2)
        done[0] = 0
        return NoState()

    def loss(self: DM, syn: Synthetic, state: NoState, task: Task, gen: object) -> Loss:
        clock.tick(time(len(task.data), done[0]))
        done[0] += 1
        return Loss(0 * syn.x.sum(), state, {})

    monkeypatch.setattr(DM, "init", init)
    monkeypatch.setattr(DM, "loss", loss)
    monkeypatch.setattr(DM, "grows", order)
    return attar.plan(DATA, "dm", per_class=2, network="mlp-d1w4", descent={"steps": steps})


def test_the_time_of_a_step_is_the_median_without_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [7.0, 0.1, 0.1, 0.9]
    made = plan(monkeypatch, lambda n, step: times[min(step, 3)] if step < 4 else 0.1, Order(rows=0), 1000)
    assert made.seconds() == pytest.approx(0.2 + 1000 * 0.1)


def test_a_single_step_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan(monkeypatch, lambda n, step: 7.0, Order(rows=0), 1).seconds() == pytest.approx(7.2)


def test_steps_whose_time_grows_with_the_data_are_rehearsed_on_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def time(n: int, step: int) -> float:
        seen.append(n)
        return 0.01 + 1e-4 * n

    assert plan(monkeypatch, time, Order(), 50).seconds() == pytest.approx(0.2 + 50 * 0.91)
    assert max(seen) < 9000


def test_the_training_of_a_network_in_the_set_up_counts_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Clock(monkeypatch).train(0.5, monkeypatch)
    method = Mnemonics(model_steps=300, net_steps=1)
    made = attar.plan(gaussians(8), method, per_class=1, network="mlp-d1w4", descent={"steps": 2})
    assert made.seconds() == pytest.approx(150.0)
    assert len(taken) < 10


def test_a_start_by_a_selection_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"per_class": 2, "network": "mlp-d1w4"}
    Clock(monkeypatch).train(0.01, monkeypatch)
    real, herded = (
        attar.plan(DATA, "dm", descent={"steps": 2, "init": init}, **given).seconds()  # type: ignore[arg-type]
        for init in ("real", "herding")
    )
    assert herded - real == pytest.approx(300 * 0.01)
