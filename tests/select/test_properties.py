"""What every registered selection method does with any embeddings."""

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attar import Training
from attar.core import registry
from attar.select.budget import share, total
from attar.select.contract import Selection
from attar.select.keep import SelectionWarning
from attar.select.run import select
from attar.select.sources import Embedded, from_embeddings
from tests.conformance import of_nested, of_selectors, options
from tests.strategies import floats, labels

few = partial(settings, max_examples=8)
SHORT = Training(steps=5, batch=8)


@st.composite
def embeddings(draw: st.DrawFn) -> Embedded:
    """Any few examples, near or far, with equal ones among them; the same again for validation."""
    y = torch.from_numpy(draw(labels(least=2)))
    size, scale = draw(st.integers(1, 4)), draw(st.sampled_from([1.0, 1e-3, 1e3]))
    kinds = draw(st.lists(st.lists(floats(5), min_size=size, max_size=size), min_size=2, max_size=len(y)))
    x = scale * torch.tensor([kinds[k % len(kinds)] for k in range(len(y))])
    logits = torch.tensor(draw(st.lists(floats(20), min_size=len(y), max_size=len(y))))[:, None] * torch.eye(3)[y]
    held = from_embeddings(x, y, logits)
    return from_embeddings(x, y, logits, training=SHORT, validation=held)


def picked(name: str, view: Embedded, size: int, seed: int = 1) -> Selection:
    method = registry.build(name, options(name, "features"), "select")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)  # of examples that all look the same
        found: Selection = method.select(view, size, torch.Generator().manual_seed(seed))
    return found


@of_selectors
@few()
@given(view=embeddings(), data=st.data())
def test_picks_are_as_many_as_asked_all_different_and_of_the_data(
    name: str, view: Embedded, data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, len(view)))
    selection = picked(name, view, size)
    assert len(selection.indices) == len(selection.scores) == size
    assert selection.indices.dtype == torch.int64
    assert len(set(selection.indices.tolist())) == size
    assert 0 <= int(selection.indices.min()) <= int(selection.indices.max()) < len(view)
    assert bool(torch.isfinite(selection.scores).all())
    if selection.weights is not None:
        assert len(selection.weights) == size
        assert bool((torch.isfinite(selection.weights) & (selection.weights >= 0)).all())


@of_nested
@few()
@given(view=embeddings(), data=st.data())
def test_a_smaller_selection_is_the_start_of_a_larger_one(name: str, view: Embedded, data: st.DataObject) -> None:
    small, large = sorted(data.draw(st.lists(st.integers(1, len(view)), min_size=2, max_size=2)))
    assert torch.equal(picked(name, view, small).indices, picked(name, view, large).indices[:small])


@of_selectors
@few()
@given(view=embeddings(), seeds=st.tuples(*[st.integers(0, 2**31)] * 2))
def test_the_global_random_state_is_neither_read_nor_changed(name: str, view: Embedded, seeds: tuple[int, int]) -> None:
    found = []
    for seed in seeds:
        torch.manual_seed(seed)
        np.random.seed(seed)
        before: list[Any] = [torch.get_rng_state(), np.random.get_state(legacy=False)["state"]["key"].copy()]
        again = from_embeddings(view.data.x, view.y, view.logits, training=SHORT, validation=view.validation)
        found.append(picked(name, again, len(view) // 2))
        assert torch.equal(before[0], torch.get_rng_state())
        assert np.array_equal(before[1], np.random.get_state(legacy=False)["state"]["key"])
    assert torch.equal(found[0].indices, found[1].indices)
    assert torch.equal(found[0].scores, found[1].scores)


@pytest.mark.filterwarnings("ignore::attar.SkewWarning")
@pytest.mark.parametrize("name", ["uniform", "herding", "k-center", "craig"])
@given(view=embeddings(), seed=st.integers(0, 99))
def test_one_of_every_class_is_one_of_every_class(name: str, view: Embedded, seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        selection = select(view, name, per_class=1, seed=seed)
    assert sorted(view.y[selection.indices].tolist()) == sorted(set(view.y.tolist()))
    assert selection.rows == selection.indices.tolist()


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.data(), st.booleans())
def test_a_budget_is_shared_to_the_last_pick_and_no_class_gives_more_than_it_has(
    counts: list[int], data: st.DataObject, balanced: bool
) -> None:
    size = data.draw(st.integers(len(counts), sum(counts)))
    shared = share(torch.tensor(counts), size, balanced=balanced)
    assert sum(shared) == size
    assert all(1 <= given <= have for given, have in zip(shared, counts, strict=True))
    if balanced:
        short = [given for given, have in zip(shared, counts, strict=True) if given < have]
        assert not short or max(short) >= max(shared) - 1
        assert not short or max(shared) - min(short) <= 1


@given(st.integers(1, 10**6), st.floats(1e-9, 1))
def test_a_fraction_of_the_data_is_some_and_never_more_than_all(n: int, fraction: float) -> None:
    assert 1 <= total(n, fraction=fraction) <= n
    assert abs(total(n, fraction=fraction) - fraction * n) <= max(0.5, 1 - fraction * n)
