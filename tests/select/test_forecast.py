"""Selections are rehearsed on parts of the examples; methods of these tests take the time that they say."""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import pytest
import torch
from torch import Generator

from attar.core.forecast import Order
from attar.core.method import Needs
from attar.data import Data
from attar.nets import network
from attar.nets.train import Training
from attar.select import MapReduce, View
from attar.select.contract import Selection, Selector
from attar.select.craig import CRAIG
from attar.select.el2n import EL2N
from attar.select.forecast import memory, seconds
from attar.select.grand import GraNd
from attar.select.herding import Herding
from attar.select.sources import from_embeddings
from attar.select.uniform import Uniform
from tests.known import Clock, gaussians, generator

NET = network("linear", (6,), 3)
DATA = gaussians(5000)  # 15,000 examples in three classes
STEPS = Training(steps=400, batch=50)


class Toy(Selector):
    """Takes the time that it is told for so many rows and picks."""

    needs: ClassVar[Needs] = Needs(labels=False)

    def __init__(self, clock: Clock, order: Order, time: Callable[[int, int], float], trains: bool = False) -> None:
        self.clock, self.given, self.time, self.trains = clock, order, time, trains
        self.most = 0

    @property
    def grows(self) -> Order:
        return self.given

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        self.most = max(self.most, len(view))
        self.clock.tick(self.time(len(view), size))
        if self.trains:
            _ = view.theta
        return Selection(torch.arange(size), torch.zeros(size))


def view() -> View:
    return View(DATA, NET, STEPS, generator())


@pytest.mark.parametrize(
    ("order", "time"),
    [
        (Order(picks=1), lambda n, k: 0.01 + 1e-5 * n * k),
        (Order(rows=2), lambda n, k: 0.02 + 1e-6 * n**2),
        (Order(), lambda n, k: 0.05 + 4e-4 * n),
    ],
)
@pytest.mark.parametrize("sizes", [[40, 40, 40], [10, 300, 25], 90])
def test_a_selection_is_forecast_from_a_part_of_its_examples(
    order: Order, time: Callable[[int, int], float], sizes: list[int] | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = Toy(Clock(monkeypatch), order, time)
    whole = time(15_000, sizes) if isinstance(sizes, int) else sum(time(5000, size) for size in sizes)
    assert seconds(view(), method, sizes) == pytest.approx(whole)
    assert method.most < 0.5 * (15_000 if isinstance(sizes, int) else 5000)


def test_training_is_counted_once_and_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    taken = clock.train(0.25, monkeypatch)
    method = Toy(clock, Order(), lambda n, k: 1e-4 * n, trains=True)
    assert seconds(view(), method, [5, 5, 5]) == pytest.approx(400 * 0.25 + 1e-4 * 15_000)
    assert len(taken) < 20


def test_checks_of_the_fit_are_counted_once_however_many_examples_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    def trained(self: View) -> torch.Tensor:
        clock.tick(1.0)
        return NET.init(generator())

    theta = cached_property(trained)
    theta.__set_name__(View, "theta")
    monkeypatch.setattr(View, "theta", theta)
    method = Toy(clock, Order(), lambda n, k: 1e-3 * n)
    monkeypatch.setattr(Toy, "needs", Needs(labels=False, features=True))
    assert seconds(view(), method, 50) == pytest.approx(1.0 + 15.0)


@pytest.mark.parametrize("method", [EL2N(networks=2, epochs=2.0), GraNd(networks=2, epochs=2.0)])
def test_trainings_of_whole_epochs_grow_with_the_examples_and_no_other_network_is_trained(
    method: Selector, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch).train(0.02, monkeypatch)
    found = seconds(View(DATA[:3000], NET, STEPS, generator()), method, [5, 5, 5])
    assert found == pytest.approx(0.02 * 2 * 3000 / 50, rel=0.05)


def test_the_network_of_a_rehearsal_is_trained_on_all_examples() -> None:
    whole = view()
    part = whole.alone(torch.arange(30), None)
    assert torch.equal(part.theta, whole.theta)
    assert torch.equal(part.features, whole.features[:30])


def test_a_part_of_a_view_trains_its_own_networks_as_before() -> None:
    part = view().part(torch.arange(60))
    (early,) = part.early(1, 2)
    assert len(early) == 60


def test_a_forecast_changes_nothing() -> None:
    before, after = (View(DATA[:600], NET, STEPS, generator()) for _ in range(2))
    seconds(after, Herding(), [2, 2, 2])
    assert torch.equal(before.theta, after.theta)
    assert torch.equal(before.gen.get_state(), after.gen.get_state())


def test_embeddings_without_labels_and_with_logits_are_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    plain = from_embeddings(DATA.x)
    scored = from_embeddings(DATA.x, DATA.y, torch.zeros(len(DATA), 3))
    for seen in (plain, scored):
        assert seconds(seen, Toy(clock, Order(), lambda n, k: 1e-3 * n), 50) == pytest.approx(15.0)
    assert len(scored.alone(torch.arange(7), None).logits) == 7


def test_parts_are_rehearsed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    method = Toy(Clock(monkeypatch), Order(rows=2), lambda n, k: 1e-6 * n**2)
    found = seconds(view(), MapReduce(method, 500), 20)
    assert method.most <= 500
    assert found == pytest.approx(30 * 0.25 + 2 * 0.09, rel=0.2)  # 30 parts, then the union of 600 picks in two


def test_the_memory_of_a_table_of_distances_is_forecast_unless_parts_bound_it() -> None:
    tables = 4 * 15_000**2
    assert memory(view(), CRAIG(), 30) > tables > memory(view(), MapReduce(CRAIG(), 500), 30)
    assert memory(view(), CRAIG(), [10, 10, 10]) > 4 * 5000**2
    assert memory(view(), Uniform(), 30) == 2 * DATA.x.nbytes  # no network is trained


def test_data_of_one_example_is_rehearsed() -> None:
    one = View(Data(torch.zeros(1, 6), torch.zeros(1, dtype=torch.int64)), NET, STEPS, generator())
    assert seconds(one, Uniform(), 1) >= 0
