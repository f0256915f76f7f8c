"""Facility location by neighbours: what it minimises, and what it loses against all distances."""

import pytest
import torch

from attar.select.facility import FacilityLocation, Table
from attar.select.greedy import lazy, naive
from attar.select.neighbours import Neighbours, neighbours
from attar.select.sources import from_embeddings
from attar.select.sparse import FacilityNeighbours, Sparse
from tests.known import generator


def far(x: torch.Tensor, picks: torch.Tensor) -> float:
    return float(torch.cdist(x, x[picks]).amin(1).sum())


def test_a_case_worked_by_hand() -> None:
    # On the line 0, 1, 2, 10, 11 with three neighbours each, the farthest are at 2, 1, 2, 8, 9. The example 1 saves
    # 1 + 1 + 1 for 0, 1 and 2; 10 saves 8 for itself and 8 for 11; 11 saves 9 and 7, so the first is taken.
    x = torch.tensor([[0.0], [1], [2], [10], [11]])
    found = FacilityNeighbours(neighbours=3).select(from_embeddings(x), 2, generator())
    assert found.indices.tolist()[0] == 3
    assert found.scores.tolist()[0] == pytest.approx(16)


def test_gains_are_those_of_the_docstring() -> None:
    x = torch.randn(60, 3, generator=generator())
    found = neighbours(x, 8)
    objective = Sparse(found)
    near = {(i, int(j)): float(d) for i in range(60) for j, d in zip(found.places[i], found.distances[i], strict=True)}

    def value(picks: list[int]) -> float:
        reach = found.distances[:, -1].tolist()
        return sum(min([reach[i], *(near[i, j] for j in picks if (i, j) in near)]) for i in range(60))

    before = value([])
    gains = objective.gain(torch.arange(60))
    assert gains.tolist() == pytest.approx([before - value([j]) for j in range(60)], abs=1e-4)
    picks = lazy(objective, 6)
    assert float(picks.gains.sum()) == pytest.approx(before - value(picks.indices.tolist()), rel=1e-4)
    assert torch.equal(picks.indices, naive(Sparse(found), 6).indices)


def test_with_all_neighbours_nothing_is_lost_and_with_few_little() -> None:
    x = torch.randn(300, 3, generator=generator())
    exact = far(x, lazy(FacilityLocation(Table(torch.cdist(x, x))), 20).indices)
    every, few = (
        far(x, FacilityNeighbours(neighbours=k).select(from_embeddings(x), 20, generator()).indices) for k in (300, 40)
    )
    random = sum(far(x, torch.randperm(300, generator=generator(s))[:20]) for s in range(10)) / 10
    assert every == pytest.approx(exact, rel=0.02)
    assert exact <= few * 1.02 < exact + 0.5 * (random - exact)


def test_approximate_neighbours_are_mostly_the_true_ones_and_always_the_same() -> None:
    pytest.importorskip("usearch", reason="usearch is an extra: pip install 'attar[ann]'")
    x = torch.randn(600, 8, generator=generator())
    true, found, again = neighbours(x, 10), neighbours(x, 10, exact=0), neighbours(x, 10, exact=0)
    assert torch.equal(found.places, again.places)
    share = sum(len(set(a) & set(b)) for a, b in zip(true.places.tolist(), found.places.tolist(), strict=True)) / 6000
    assert share > 0.95
    assert torch.allclose(found.distances[:, 1:], torch.gather(torch.cdist(x, x), 1, found.places)[:, 1:], atol=1e-3)


@pytest.mark.parametrize("exact", [0, 100])
def test_every_example_is_its_own_first_neighbour_even_among_duplicates(exact: int) -> None:
    if not exact:
        pytest.importorskip("usearch", reason="usearch is an extra: pip install 'attar[ann]'")
    found: Neighbours = neighbours(torch.ones(40, 2), 5, exact=exact)
    assert found.places[:, 0].tolist() == list(range(40))
    assert float(found.distances.abs().max()) == 0
    assert all(len(set(row)) == 5 for row in found.places.tolist())
