import torch

import attar
from attar.select import Selection
from tests.known import gaussians

DATA = gaussians(16)


def picked(tries: int) -> Selection:
    options = {"tries": tries, "steps": 30}
    return attar.select(DATA, "optimised-real", per_class=1, network="mlp-d1w8", options=options)


def test_more_tries_lead_to_a_lower_training_loss() -> None:
    one, many = picked(1), picked(15)  # the first try is the same
    assert float(many.scores[0]) > float(one.scores[0])
    assert DATA.y[many.indices].tolist() == [0, 1, 2]
    assert len(torch.unique(many.scores)) == 1


def test_without_classes_it_selects_from_all() -> None:
    found = attar.select(DATA, "optimised-real", size=4, network="mlp-d1w8", options={"tries": 2}, balanced=False)
    assert len(set(found.indices.tolist())) == 4
