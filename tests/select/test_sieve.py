"""Facility location in one pass: at least one half less epsilon of the best possible value."""

from itertools import combinations

import pytest
import torch

from attar.select.sieve import Sieve
from attar.select.sources import from_embeddings
from tests.known import generator


def values(x: torch.Tensor) -> torch.Tensor:
    """What each example covers of each, as the method's docstring says."""
    reach = 2 * (x - x.mean(0)).norm(dim=1).max()
    return (reach - torch.cdist(x, x)).clamp(min=0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("epsilon", [0.05, 0.3])
def test_the_value_is_at_least_half_less_epsilon_of_the_best_possible(seed: int, epsilon: float) -> None:
    x = torch.randn(13, 2, generator=generator(seed)).exp() ** 2
    cover = values(x)
    for size in (1, 3):
        best = max(float(cover[list(some)].amax(0).sum()) for some in combinations(range(13), size))
        found = Sieve(epsilon=epsilon).select(from_embeddings(x), size, generator())
        assert len(set(found.indices.tolist())) == size
        assert float(cover[found.indices].amax(0).sum()) >= (0.5 - epsilon) * best - 1e-4


def test_gains_add_up_to_the_value_and_batches_do_not_matter() -> None:
    x = torch.randn(300, 3, generator=generator())
    method = Sieve(sample=300)
    states = []
    for batch in (1, 64, 300):
        state = method.begin(x, 8)
        for places in torch.arange(300).split(batch):
            state = method.feed(state, x[places], places)
        states.append(method.finish(state))
    assert torch.equal(states[0].numbers, states[1].numbers)
    assert torch.equal(states[0].numbers, states[2].numbers)
    value = float(values(x)[states[0].numbers].amax(0).sum())
    assert float(states[0].scores.sum()) == pytest.approx(value, rel=1e-4)
