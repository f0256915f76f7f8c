"""k-center in one pass: at most eight times the best possible radius, whatever the order."""

from itertools import combinations

import pytest
import torch

from attar.select.doubling import Doubling
from attar.select.sources import from_embeddings
from tests.known import generator


def best_radius(x: torch.Tensor, size: int) -> float:
    distances = torch.cdist(x, x)
    return min(float(distances[list(some)].amin(0).max()) for some in combinations(range(len(x)), size))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_radius_is_at_most_eight_times_the_best_possible(seed: int, size: int) -> None:
    x = torch.randn(14, 2, generator=generator(seed)).exp() ** 2
    found = Doubling().select(from_embeddings(x), size, generator())
    assert len(set(found.indices.tolist())) == size
    assert float(torch.cdist(x, x[found.indices]).amin(1).max()) <= 8 * best_radius(x, size) + 1e-5


@pytest.mark.parametrize("seed", range(4))
def test_its_own_bounds_hold_after_every_example(seed: int) -> None:
    x = torch.randn(16, 2, generator=generator(seed)).exp()
    method, size = Doubling(), 3
    state = method.begin(x, size)
    for count in range(1, 17):
        state = method.feed(state, x[count - 1 : count], torch.tensor([count - 1]))
        assert len(state.x) <= size
        assert float(torch.cdist(x[:count], state.x).amin(1).max()) <= 2 * state.radius + 1e-5
        if count > size:
            assert best_radius(x[:count], size) >= state.radius / 4 - 1e-5


def test_batches_do_not_matter_and_duplicates_are_no_centres() -> None:
    x = torch.randn(200, 3, generator=generator()).repeat(2, 1)
    method = Doubling()
    states = []
    for batch in (1, 7, 400):
        state = method.begin(x, 10)
        for places in torch.arange(400).split(batch):
            state = method.feed(state, x[places], places)
        states.append(state)
    for state in states[1:]:
        assert torch.equal(state.numbers, states[0].numbers)
        assert state.radius == states[0].radius
    equal = torch.ones(9, 2)
    equal[8] = 0
    found = method.select(from_embeddings(equal), 4, generator())
    assert found.indices.tolist() == [0, 8, 1, 2]  # two centres, and others that fill up
