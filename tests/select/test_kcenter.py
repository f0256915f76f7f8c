from itertools import combinations

import pytest
import torch
from torch import Tensor

from attar.select.contextual import ContextualDiversity
from attar.select.kcenter import KCenter
from attar.select.sources import from_embeddings
from tests.known import generator
from tests.select.seen import cloud, line


def radius(x: Tensor, picks: Tensor) -> float:
    return float(torch.cdist(x, x[picks]).amin(1).max())


def test_a_case_worked_by_hand() -> None:
    # The mean is 6: 7 is nearest. Farthest from it is 19 (12), then 0 (7), then 3 (3 from 0), which leaves 1.
    selection = KCenter().select(line(0, 3, 7, 1, 19), 4, generator())
    assert selection.indices.tolist() == [2, 4, 0, 1]
    assert selection.scores.tolist() == pytest.approx([12, 7, 3, 1], abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_radius_is_at_most_twice_the_best_possible(seed: int) -> None:
    x = torch.randn(11, 2, generator=generator(seed)).exp()
    best = min(radius(x, torch.tensor(s)) for s in combinations(range(11), 3))
    selection = KCenter().select(from_embeddings(x), 3, generator())
    assert best <= radius(x, selection.indices) <= 2 * best
    assert float(selection.scores[-1]) == pytest.approx(radius(x, selection.indices), abs=1e-4)


def test_the_radius_is_far_below_that_of_a_random_subset() -> None:
    x = torch.randn(400, 3, generator=generator()).exp()
    ours = radius(x, KCenter().select(from_embeddings(x), 20, generator()).indices)
    random = [radius(x, torch.randperm(400, generator=generator(s))[:20]) for s in range(20)]
    assert ours < min(random) / 2


def test_copies_are_taken_last_and_by_place() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [9.0, 9.0], [1.0, 0.0]])
    selection = KCenter().select(from_embeddings(x), 6, generator())
    assert sorted(selection.indices[:3].tolist()) == [0, 1, 4]
    assert selection.indices[3:].tolist() == [2, 3, 5]
    assert selection.scores[2:].tolist() == pytest.approx([0] * 4, abs=1e-3)


def test_picks_stay_right_far_from_the_origin() -> None:
    x = torch.randn(40, 4, generator=generator(3))
    near, far = (KCenter().select(from_embeddings(x + shift), 12, generator()).indices for shift in (0, 1000))
    assert near.tolist() == far.tolist()


def test_contextual_diversity_is_k_center_under_the_symmetric_divergence() -> None:
    view = cloud()
    p = view.probabilities.double()
    kl = (p[:, None] * (p[:, None] / p).log()).sum(2)
    both, mean = kl + kl.T, p.mean(0)
    picks = [int(((p - mean) * (p / mean).log()).sum(1).argmin())]
    while len(picks) < 8:
        picks.append(int(both[picks].amin(0).argmax()))
    selection = ContextualDiversity().select(view, 8, generator())
    assert selection.indices.tolist() == picks
    assert float(selection.scores[-1]) == pytest.approx(float(both[picks].amin(0).max()), rel=1e-4)


def test_contextual_diversity_leaves_less_than_a_random_subset_does() -> None:
    view = cloud(200)
    p = view.probabilities.double()
    kl = (p[:, None] * (p[:, None] / p).log()).sum(2)
    both = kl + kl.T
    ours = float(both[ContextualDiversity().select(view, 10, generator()).indices].amin(0).max())
    random = [float(both[torch.randperm(200, generator=generator(s))[:10]].amin(0).max()) for s in range(20)]
    assert ours < min(random)
