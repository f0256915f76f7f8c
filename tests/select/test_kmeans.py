import torch

import attar
from attar.data import Data
from tests.known import gaussians

DATA = gaussians(16)


def test_one_pick_per_class_is_the_example_nearest_to_the_mean() -> None:
    picked = attar.reduce(DATA, "k-means", per_class=1)
    for c, x in enumerate(picked.data.x):
        members = DATA.x[DATA.y == c]
        assert torch.equal(x, members[(members - members.mean(0)).norm(dim=1).argmin()])


def test_no_example_is_picked_twice() -> None:
    same = Data(torch.cat([torch.zeros(6, 2), torch.ones(6, 2)]), torch.arange(2).repeat_interleave(6))
    picked = attar.reduce(same, "k-means", per_class=4)
    assert picked.indices is not None
    assert len(set(picked.indices.tolist())) == 8
