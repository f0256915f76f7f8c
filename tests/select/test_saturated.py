"""What constant features, dead layers and saturated predictions make of methods that go by gradients."""

import pytest
import torch
from torch import Tensor

from attar.core import registry
from attar.core.errors import AttarError
from attar.select import select
from attar.select.adaptive import Adaptive
from attar.select.balance import PerClass
from attar.select.craig import CRAIG
from attar.select.kcenter import KCenter
from attar.select.keep import SelectionWarning
from attar.select.mapreduce import MapReduce
from attar.select.sources import from_embeddings
from tests.known import generator

BY_GRADIENTS = ["craig", "adacore", "lcmat-s", "gradmatch", "glister"]


def features(n: int = 12) -> Tensor:
    return torch.randn(n, 3, generator=generator())


def test_examples_as_far_as_the_auxiliary_one_belong_to_the_first_pick() -> None:
    labels = torch.tensor([0, 1])
    with pytest.warns(SelectionWarning, match="same features"):
        picked = select(torch.ones(2, 3), "craig", labels=labels, logits=torch.zeros(2, 2), size=1)
    assert picked.weights is not None
    assert picked.weights.tolist() == [2]


@pytest.mark.parametrize("method", BY_GRADIENTS)
def test_one_wrong_label_among_certain_predictions_is_scored_finitely(method: str) -> None:
    y = torch.arange(12) % 2
    logits = 500 * torch.eye(2)[y]
    y[5] = 1 - y[5]
    picked = select(features(), method, labels=y, logits=logits, size=3)
    assert torch.isfinite(picked.scores).all()
    if method in ("adacore", "lcmat-s", "craig"):
        assert 5 in picked.indices.tolist()  # the only example with a gradient


@pytest.mark.parametrize("method", ["giga", "frank-wolfe", "sparse-vi"])
def test_parts_of_what_says_nothing_keep_finite_weights(method: str) -> None:
    y = torch.arange(40) % 2
    view = from_embeddings(features(40), y, 5000 * torch.eye(2)[y])
    selector = registry.build(method, {}, "select")
    with pytest.warns(SelectionWarning):
        picked = MapReduce(selector, 10).select(view, 2, generator())
    assert picked.weights is not None
    assert picked.weights.sum().item() == pytest.approx(40)


def test_parts_that_hold_everything_change_no_weight() -> None:
    y = torch.arange(40) % 2
    view = from_embeddings(features(40), y)
    at_once, by_part = (
        selector.select(view, 3, generator())
        for selector in (registry.build("gradmatch", {}), MapReduce(registry.build("gradmatch", {}), 40))
    )
    assert torch.equal(at_once.weights, by_part.weights)


def test_wrappers_that_would_be_wrapped_twice_are_refused() -> None:
    y = torch.arange(12) % 2
    with pytest.raises(AttarError, match="the method that PerClass wraps"):
        select(features(), PerClass(KCenter()), labels=y, size=4)
    with pytest.raises(AttarError, match="all classes at once"):
        select(features(), Adaptive(CRAIG()), labels=y, per_class=2)


def test_contextual_diversity_starts_at_the_mean_where_a_class_is_never_predicted() -> None:
    logits = torch.tensor([[9.0, 0, -1000], [5.0, 4, -1000], [4.0, 4, -1000], [0.0, 9, -1000]])
    picked = select(features(4), "contextual-diversity", labels=torch.tensor([0, 0, 1, 1]), logits=logits, size=1)
    assert picked.indices.tolist() == [2]  # the tie


def test_other_parameters_see_labels_and_validation_as_the_view_does() -> None:
    y = torch.arange(12) % 2
    held = from_embeddings(features(6), y[:6])
    view = from_embeddings(features(), y, validation=held)
    other = view.at(view.network.init(generator(3)))
    assert torch.equal(other.validation.theta, other.theta)
    with pytest.raises(AttarError, match="needs labels"):
        _ = from_embeddings(features()).at(torch.zeros(4)).y
