"""Steps of condensations are rehearsed; those of these tests take the time that they say."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import attar
from attar.condense.contract import Loss, NoState, Task
from attar.condense.dm import DM
from attar.condense.mnemonics import Mnemonics
from attar.condense.source import Synthetic
from attar.core.forecast import Order
from attar.plan import Plan
from tests.known import HANG, Clock, gaussians, new_python

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


def test_the_first_step_counts_once_and_the_median_of_the_others_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [7.0, 0.1, 0.1, 0.9]
    made = plan(monkeypatch, lambda n, step: times[min(step, 3)] if step < 4 else 0.1, Order(rows=0), 1000)
    assert made.seconds() == pytest.approx(0.2 + 7.0 + 999 * 0.1)


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


MEASURED = """
import json
import torch
import attar
from attar.core.cost import measure
from attar.reduce import run
gen = torch.Generator().manual_seed(0)
data = attar.Data(torch.randn(2000, 1, 16, 16, generator=gen), torch.arange(2000) % 2)
found = {}
unrolled = {"epochs": 1, "batches": 8, "inits": 1}
for method, size, options in [("dm", 2, {"batch": 512}), ("dd", 8, unrolled), ("label-solve", 50, {})]:
    settings = {} if method == "label-solve" else {"descent": {"steps": 2}}
    made = attar.plan(data, method, per_class=size, network="convnet-d2w16", options=options, **settings)
    run(made)  # libraries are set up by the first use
    forecast = made.memory()
    with measure() as before:
        pass
    found[method] = forecast, run(made).recipe.cost.memory - before.memory + data.x.nbytes
print(json.dumps(found))
"""


def test_memory_is_forecast_within_a_factor_of_two_of_the_measured_peak() -> None:
    child = new_python(MEASURED)  # where nothing else takes or frees memory
    out, said = child.communicate(timeout=HANG)
    assert child.returncode == 0, said
    found = json.loads(out)
    assert len(found) == 3
    for method, (forecast, peak) in found.items():
        assert peak / 2 < forecast < 2 * peak, (method, forecast, peak)


def test_memory_follows_the_rows_and_what_is_held_once_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rehearsals on parts of 9,000 rows: a thousand bytes a row, and a million that the first one takes in addition."""
    taken = list[int]()

    @contextmanager
    def watched(device: object) -> Iterator[SimpleNamespace]:
        peak = SimpleNamespace(bytes=0)
        yield peak
        peak.bytes = 1000 * seen[-1] + (0 if taken else 1_000_000)
        taken.append(peak.bytes)

    seen = list[int]()

    def time(n: int, step: int) -> float:
        seen.append(n)
        return 1e-4 * n

    monkeypatch.setattr("attar.condense.forecast._watched", watched)
    made = plan(monkeypatch, time, Order(), 50)
    assert made.memory() == 9000 * 1000 + 1_000_000 + DATA.x.nbytes
    assert max(seen) < 9000
    count = len(taken)
    made.seconds()
    assert len(taken) == count  # both come from one rehearsal
