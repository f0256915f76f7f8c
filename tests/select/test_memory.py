"""What is held in memory while methods look at gradients of the last layer."""

import pytest
import torch

from attar.select.adacore import AdaCore
from attar.select.balance import PerClass
from attar.select.contract import Selector
from attar.select.craig import CRAIG
from attar.select.frank_wolfe import FrankWolfe
from attar.select.giga import GIGA
from attar.select.glister import Glister, GlisterVal
from attar.select.gradmatch import GradMatch, GradMatchVal
from attar.select.lcmats import LCMatS
from attar.select.mapreduce import MapReduce
from attar.select.sparse_vi import SparseVI
from tests.known import Largest, generator
from tests.select.seen import cloud, exact

N, FEATURES, CLASSES = 200, 60, 8
METHODS: list[Selector] = [CRAIG(), AdaCore(), LCMatS(), GradMatch(), GradMatchVal(), Glister(), GlisterVal()]
METHODS += [GIGA(draws=20), FrankWolfe(draws=20), SparseVI(draws=20)]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_no_matrix_of_all_gradients_ever_exists(method: Selector) -> None:
    view = cloud(N, FEATURES, CLASSES)
    with Largest() as largest:
        method.select(view, 5, generator())
    assert 0 < largest.numbers < N * CLASSES * (FEATURES + 1) // 2


def test_a_selection_by_parts_holds_parts_and_no_whole_class() -> None:
    view = cloud(1200, 40, 3)
    _ = view.features, view.gradients
    with Largest() as largest:
        selection = PerClass(MapReduce(CRAIG(), 50)).select(view, 4, generator())
    assert len(selection.indices) == 12
    assert largest.numbers < int(view.y.bincount().max()) * 40 / 2


def test_what_methods_by_gradients_ask_of_a_part_copies_no_example_of_it() -> None:
    part = exact(30).of_class(1)
    assert len(part.gradients) == len(part.curvatures) == len(part.losses) == len(part) == 10
    assert "data" not in vars(part)


def test_a_part_by_mask_is_that_by_places() -> None:
    view = cloud()
    for part in (view.part(view.y == 1), view.part((view.y == 1).nonzero().flatten())):
        assert len(part) == len(part.features) == len(part.data) == int((view.y == 1).sum())


def test_such_a_matrix_would_be_noticed() -> None:
    gradients = cloud(N, FEATURES, CLASSES).gradients
    with Largest() as largest:
        torch.cat([gradients.slab(c) for c in range(CLASSES)], 1)
    assert largest.numbers >= N * CLASSES * (FEATURES + 1)
