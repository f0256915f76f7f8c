from itertools import combinations

import pytest
import torch
from torch import Generator

from attar.core.errors import AttarError
from attar.nets.train import Training
from attar.select.balance import PerClass
from attar.select.contract import Selection, Selector
from attar.select.craig import CRAIG
from attar.select.el2n import EL2N
from attar.select.entropy import Entropy
from attar.select.herding import Herding
from attar.select.kcenter import KCenter
from attar.select.mapreduce import MapReduce
from attar.select.metrics import GradientDistance
from attar.select.sources import from_embeddings
from attar.select.view import View
from tests.known import generator
from tests.select.seen import cloud


class Largest:
    """Take the largest numbers, and remember how many were looked at at once."""

    def __init__(self) -> None:
        self.looked: list[int] = []

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        self.looked.append(len(view))
        order = view.features[:, 0].argsort(descending=True)[:size]
        return Selection(order, view.features[order, 0])


def test_what_is_best_in_parts_and_then_again_is_the_best_of_all() -> None:
    x = torch.randperm(1000, generator=generator())[:, None].float()
    inner = Largest()
    selection = MapReduce(inner, part=50).select(from_embeddings(x), 4, generator())
    assert x[selection.indices, 0].tolist() == [999, 998, 997, 996]
    assert max(inner.looked) <= 50
    assert inner.looked == [50] * 20 + [40] * 2 + [8]  # 1000 in 20 parts give 80, in two parts 8, then 4


def test_few_enough_examples_are_selected_from_at_once() -> None:
    view = cloud(50)
    expected = KCenter().select(view, 5, generator())
    assert torch.equal(MapReduce(KCenter(), part=50).select(view, 5, generator()).indices, expected.indices)


@pytest.mark.parametrize("seed", range(5))
def test_the_radius_of_k_center_is_at_most_four_times_the_best_possible(seed: int) -> None:
    x = torch.randn(14, 2, generator=generator(seed)).exp()
    distances = torch.cdist(x, x)
    best = min(float(distances[list(s)].amin(0).max()) for s in combinations(range(14), 2))
    selection = MapReduce(KCenter(), part=7).select(from_embeddings(x), 2, generator(seed))
    assert float(distances[selection.indices].amin(0).max()) <= 4 * best


@pytest.mark.parametrize("seed", range(3))
def test_every_round_of_parts_adds_at_most_two_best_radii(seed: int) -> None:
    x = torch.randn(40, 2, generator=generator(seed)).exp()
    distances = torch.cdist(x, x)
    best = min(float(distances[list(s)].amin(0).max()) for s in combinations(range(40), 2))
    rounds = 3  # 40 in 8 parts give 16, in 4 parts 8, in 2 parts 4
    selection = MapReduce(KCenter(), part=5).select(from_embeddings(x), 2, generator(seed))
    assert float(distances[selection.indices].amin(0).max()) <= 2 * (rounds + 1) * best


@pytest.mark.parametrize("method", [Entropy(), EL2N(networks=1, steps=3)])
def test_ranks_by_the_scores_of_the_whole_lose_nothing(method: Selector) -> None:
    x = torch.randn(90, 4, generator=generator())
    view = from_embeddings(x, torch.arange(90) % 3, training=Training(steps=5))
    whole, parts = (m.select(view, 6, generator()) for m in (method, MapReduce(method, part=20)))
    assert torch.equal(whole.indices, parts.indices)


def test_facility_location_from_parts_is_nearly_as_good_as_from_all() -> None:
    view = cloud(400)
    metric = GradientDistance(view.gradients)

    def ways(picks: torch.Tensor) -> float:
        return float(metric.rows(picks).amin(0).sum())

    whole, parts = (method.select(view, 10, generator()) for method in (CRAIG(), MapReduce(CRAIG(), part=100)))
    random = [ways(torch.randperm(400, generator=generator(s))[:10]) for s in range(20)]
    assert ways(whole.indices) <= ways(parts.indices) < min(random)
    assert parts.weights is not None
    assert float(parts.weights.sum()) == pytest.approx(400)


def test_classes_may_be_cut_into_parts_too() -> None:
    view = cloud(200)
    selection = PerClass(MapReduce(Herding(), part=20)).select(view, 3, generator())
    assert view.y[selection.indices].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_parts_that_hardly_shrink_are_refused() -> None:
    with pytest.raises(AttarError, match="Parts of 20 are too small to pick 10 from: ask for parts of 40"):
        MapReduce(KCenter(), part=20).select(cloud(), 10, generator())
