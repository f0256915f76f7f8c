import pytest
import torch

from attar.select import facility
from attar.select.craig import CRAIG
from attar.select.facility import FacilityLocation, Table, locate
from attar.select.greedy import lazy
from attar.select.metrics import CityDistance, GradientDistance
from tests.known import generator
from tests.select.seen import cloud, line


def test_a_case_worked_by_hand() -> None:
    # 10 has the smallest sum of distances. Then 1 shortens the ways of 0, 1, 2 by 9 + 9 + 7 = 25, more than 0 and 2
    # (24 each) or 30 (20). Then 30 does by 20. Ways are 1/√2 of the distances on the line, as gradients are ½ of [h, 1]
    # in each of two classes.
    selection = CRAIG().select(line(0, 1, 2, 10, 11, 12, 30), 3, generator())
    assert selection.indices.tolist() == [3, 1, 6]
    assert selection.weights is not None
    assert selection.weights.tolist() == [3, 3, 1]
    assert selection.scores[1:].tolist() == pytest.approx([25 / 2**0.5, 20 / 2**0.5], rel=1e-5)


def test_gains_add_up_to_the_ways_that_were_saved() -> None:
    x = torch.randn(100, 4, generator=generator())
    objective = FacilityLocation(CityDistance(x))
    before = float(objective.near.sum())
    picks = lazy(objective, 12)
    after = torch.cdist(x, x[picks.indices], p=1).amin(1)
    assert torch.allclose(objective.near, after, atol=1e-5)
    assert float(picks.gains.sum()) == pytest.approx(before - float(after.sum()), rel=1e-5)


def test_the_auxiliary_example_is_farther_than_anything() -> None:
    x = torch.randn(50, 4, generator=generator())
    assert float(FacilityLocation(CityDistance(x)).near.min()) >= float(torch.cdist(x, x, p=1).max())


def test_clusters_are_those_of_the_nearest_pick_and_hold_everyone() -> None:
    x = torch.randn(200, 3, generator=generator())
    selection = locate(CityDistance(x), 15, weighted=True)
    nearest = torch.cdist(x, x[selection.indices], p=1).argmin(1)
    assert selection.weights is not None
    assert torch.equal(selection.weights, torch.bincount(nearest, minlength=15).float())
    assert float(selection.weights.sum()) == 200


def test_a_copy_of_a_pick_stands_for_itself() -> None:
    selection = locate(CityDistance(torch.tensor([[0.0], [0.0], [5.0], [5.0], [5.0]])), 5, weighted=True)
    assert selection.weights is not None
    assert selection.indices.tolist() == [2, 0, 1, 3, 4]
    assert selection.weights.tolist() == [1] * 5
    assert selection.scores[2:].tolist() == [0] * 3


def test_without_room_for_a_table_the_picks_are_the_same() -> None:
    x = torch.randn(150, 3, generator=generator())
    metric = CityDistance(x)
    with_table, without = FacilityLocation(metric), FacilityLocation(metric, memory=100)
    assert isinstance(with_table.metric, Table)
    assert without.metric is metric
    assert torch.equal(lazy(with_table, 30).indices, lazy(without, 30).indices)


def test_without_room_for_a_table_the_picks_by_gradients_are_the_same() -> None:
    metric = GradientDistance(cloud(300, 20, 4).gradients)
    with_table, without = (lazy(FacilityLocation(metric, memory), 40) for memory in (2**20, 0))
    assert torch.equal(with_table.indices, without.indices)
    assert torch.allclose(with_table.gains, without.gains, rtol=1e-6)


@pytest.mark.parametrize(("free", "fits"), [(4 * 50**2 * 4, True), (4 * 50**2 * 4 - 4, False)])
def test_a_table_takes_a_quarter_of_the_free_memory_at_most(
    free: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facility, "available", lambda: free)
    objective = FacilityLocation(CityDistance(torch.randn(50, 3, generator=generator())))  # 50² numbers of 4 bytes
    assert isinstance(objective.metric, Table) == fits


def test_the_table_is_filled_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(53, 3, generator=generator())
    monkeypatch.setattr(facility, "BLOCK", 53 * 7)
    filled = FacilityLocation(CityDistance(x)).metric
    assert isinstance(filled, Table)
    assert torch.allclose(filled.distances, torch.cdist(x, x, p=1), atol=1e-6)


def test_an_example_that_stands_for_several_counts_as_often() -> None:
    x = torch.randn(20, 3, generator=generator())
    counts = torch.tensor([1, 3] * 10)
    many = x.repeat_interleave(counts, 0)
    first = counts.cumsum(0) - counts
    once = locate(Table(torch.cdist(x, x)), 5, weighted=True, counts=counts.float())
    every = locate(Table(torch.cdist(many, many)), 5, weighted=True)
    assert torch.equal(first[once.indices], every.indices)
    assert torch.allclose(once.scores, every.scores, rtol=1e-4)
    assert once.weights is not None
    assert every.weights is not None
    assert torch.equal(once.weights, every.weights)
    assert float(once.weights.sum()) == 40
