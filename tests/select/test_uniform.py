from collections import Counter

import torch

from attar.data import Data
from attar.nets import network
from attar.nets.train import Training
from attar.select.uniform import Uniform
from attar.select.view import View
from tests.known import generator


def view(n: int) -> View:
    data = Data(torch.full((n, 2), torch.nan), torch.arange(n) % 2)  # never looked at: training on it would fail
    return View(data, network("linear", (2,), 2), Training(), generator())


def test_every_subset_is_as_likely_as_any_other() -> None:
    gen, draws, seen = generator(), 3000, view(4)
    counts = Counter(frozenset(Uniform().select(seen, 2, gen).indices.tolist()) for _ in range(draws))
    assert len(counts) == 6
    # Chi-squared with 5 degrees of freedom stays below 20.5 with probability 0.999.
    assert sum((count - draws / 6) ** 2 / (draws / 6) for count in counts.values()) < 20.5


def test_no_more_are_picked_than_there_are() -> None:
    assert sorted(Uniform().select(view(3), 9, generator()).indices.tolist()) == [0, 1, 2]
