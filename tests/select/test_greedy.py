from itertools import combinations
from math import e

import pytest
import torch
from torch import Tensor

from attar.select.facility import FacilityLocation, Table
from attar.select.greedy import in_rounds, lazy, naive
from attar.select.metrics import CityDistance
from tests.known import generator


class Cover:
    """How many different things the picked sets hold together."""

    def __init__(self, *sets: set[int]) -> None:
        self.sets = sets
        self.covered: set[int] = set()
        self.asked = 0

    def __len__(self) -> int:
        return len(self.sets)

    def gain(self, candidates: Tensor) -> Tensor:
        self.asked += len(candidates)
        return torch.tensor([float(len(self.sets[i] - self.covered)) for i in candidates.tolist()])

    def add(self, i: int) -> None:
        self.covered |= self.sets[i]


SETS = ({1, 2}, {1, 2, 3, 4}, {5, 6, 7}, {4, 5, 6}, {8}, {7, 8})


@pytest.mark.parametrize("way", [naive, lazy])
def test_a_case_worked_by_hand(way: type) -> None:
    # {1,2,3,4} adds 4, then {5,6,7} adds 3, then {8} and {7,8} add 1 each and the first of them is taken.
    picks = way(Cover(*SETS), 6)
    assert picks.indices.tolist() == [1, 2, 4, 0, 3, 5]
    assert picks.gains.tolist() == [4, 3, 1, 0, 0, 0]


def test_rounds_take_one_of_every_group_that_lacks_some() -> None:
    # The first round takes {1,2,3,4} of the first three and {4,5,6} of the others. In the second, {7,8} adds 2 and
    # {5,6,7} only 1, so {7,8} comes first; then nothing is left to add.
    picks = in_rounds(Cover(*SETS), torch.tensor([0, 0, 0, 1, 1, 1]), [2, 2])
    assert picks.indices.tolist() == [1, 3, 5, 0]
    assert picks.gains.tolist() == [4, 2, 2, 0]
    few = in_rounds(Cover(*SETS), torch.tensor([0, 0, 0, 1, 1, 1]), [1, 2])
    assert few.indices.tolist() == [1, 3, 5]


def random_sets(seed: int, n: int = 300) -> Cover:
    draws = torch.rand(n, 60, generator=generator(seed)) < 0.08
    return Cover(*({int(j) for j in row.nonzero()} for row in draws))


@pytest.mark.parametrize("seed", range(5))
def test_lazy_picks_are_the_naive_ones_though_gains_tie_everywhere(seed: int) -> None:
    expected, found = naive(random_sets(seed), 40), lazy(random_sets(seed), 40)
    assert torch.equal(expected.indices, found.indices)
    assert torch.equal(expected.gains, found.gains)


def test_lazy_greedy_looks_at_few() -> None:
    sets = random_sets(0, 2000)
    lazy(sets, 10)
    assert sets.asked < 2000 * 10 / 3


@pytest.mark.parametrize("seed", range(3))
def test_lazy_picks_are_the_naive_ones_for_facility_location(seed: int) -> None:
    x = torch.randn(400, 3, generator=generator(seed)).round(decimals=1)  # with copies, so with ties
    expected, found = (way(FacilityLocation(CityDistance(x)), 60) for way in (naive, lazy))
    assert torch.equal(expected.indices, found.indices)
    assert torch.equal(expected.gains, found.gains)


@pytest.mark.parametrize("way", [naive, lazy])
def test_a_smaller_budget_is_a_prefix_and_gains_never_grow(way: type) -> None:
    x = torch.randn(80, 3, generator=generator())
    large = way(FacilityLocation(CityDistance(x)), 20)
    small = way(FacilityLocation(CityDistance(x)), 7)
    assert torch.equal(small.indices, large.indices[:7])
    assert bool((large.gains.diff() <= 0).all())
    assert len(way(FacilityLocation(CityDistance(x)), 100).indices) == 80


@pytest.mark.parametrize("seed", range(5))
def test_the_value_is_within_one_minus_one_over_e_of_the_best(seed: int) -> None:
    x = torch.randn(10, 2, generator=generator(seed))
    distances = torch.cdist(x, x)
    far = 2 * distances.amax() / 2
    best = max(float((far - distances[list(s)].amin(0)).clamp(min=0).sum()) for s in combinations(range(10), 3))
    value = float(lazy(FacilityLocation(Table(distances)), 3).gains.sum())
    assert (1 - 1 / e) * best <= value <= best + 1e-4
