"""What is true of the scores of any predictions."""

from dataclasses import astuple
from math import log

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from attar.assess import metrics
from attar.assess.metrics import TINY, score

Predictions = tuple[Tensor, Tensor]


@st.composite
def predictions(draw: st.DrawFn) -> Predictions:
    """Probabilities, of which some may be exactly 0 or 1, and labels."""
    shape = draw(st.tuples(st.integers(1, 30), st.integers(2, 5)))
    logits = draw(hnp.arrays(np.float64, shape, elements=st.floats(-30, 30) | st.sampled_from([0.0, 1e4])))
    y = draw(hnp.arrays(np.int64, shape[:1], elements=st.integers(0, shape[1] - 1)))
    return torch.from_numpy(logits).softmax(1), torch.from_numpy(y)


@given(predictions())
def test_every_score_stays_within_its_bounds(given: Predictions) -> None:
    p, y = given
    found = score(p, y)
    assert 0 <= found.accuracy <= 1
    assert 0 <= found.nll <= -log(TINY)
    assert 0 <= found.brier <= 2
    assert found.adaptive_ece is not None
    assert found.entropy is not None
    assert 0 <= found.ece <= 1
    assert 0 <= found.adaptive_ece <= 1
    assert -1e-9 <= found.entropy <= log(p.shape[1]) + 1e-9


@given(predictions())
def test_the_parts_of_the_scores_add_up(given: Predictions) -> None:
    p, y = given
    found = score(p, y)
    assert sum(map(sum, found.confusion)) == len(y)
    assert [sum(row) for row in found.confusion] == torch.bincount(y, minlength=p.shape[1]).tolist()
    assert sum(row[c] for c, row in enumerate(found.confusion)) / len(y) == pytest.approx(found.accuracy)
    for bins in (found.reliability, metrics.equal_mass(p, y)):
        assert sum(bar.size for bar in bins) == len(y)
        assert sum(bar.size * bar.accuracy for bar in bins) / len(y) == pytest.approx(found.accuracy)
        mean = float(p.max(1).values.mean())
        assert sum(bar.size * bar.confidence for bar in bins) / len(y) == pytest.approx(mean)
        assert metrics.ece(bins) >= abs(mean - found.accuracy) - 1e-9  # no binning hides that sureness is off in all


def close(a: object, b: object) -> bool:
    """Whether two scores, or lists of them, are the same up to rounding."""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(close, a, b))
    return a == pytest.approx(b, abs=1e-9)


@given(predictions(), st.randoms())
def test_the_order_of_the_examples_does_not_matter(given: Predictions, chance: object) -> None:
    p, y = given
    order = list(range(len(y)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    assert close(list(astuple(score(p, y))), list(astuple(score(p[order], y[order]))))


@given(predictions(), st.data())
def test_the_numbers_of_the_classes_do_not_matter(given: Predictions, data: st.DataObject) -> None:
    p, y = given
    p = (0.9 * p + 0.1 * torch.arange(1.0, p.shape[1] + 1).softmax(0)).double()
    p = p / p.sum(1, keepdim=True)
    top = p.topk(2).values
    assume(bool((top[:, 0] > top[:, 1]).all()))  # of two that are as likely, the first is predicted
    order = torch.tensor(data.draw(st.permutations(range(p.shape[1]))))
    first, renamed = score(p, y), score(p[:, order], order.argsort()[y])
    for name in ("accuracy", "nll", "brier", "ece", "adaptive_ece", "entropy"):
        assert getattr(first, name) == pytest.approx(getattr(renamed, name), abs=1e-9)
    table = torch.tensor(first.confusion)
    assert torch.equal(table[order][:, order], torch.tensor(renamed.confusion))


@given(predictions())
def test_certainty_of_the_truth_is_perfect(given: Predictions) -> None:
    p, y = given
    sure = score(torch.eye(p.shape[1]).double()[y], y)
    assert (sure.accuracy, sure.nll, sure.brier, sure.ece, sure.adaptive_ece, sure.entropy) == (1, 0, 0, 0, 0, 0)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9), st.floats(-10, 10))
def test_a_mean_moves_with_its_values_and_its_error_does_not(values: list[float], shift: float) -> None:
    mean, error = metrics.mean_and_error(values)
    moved, same = metrics.mean_and_error([value + shift for value in values])
    assert min(values) - 1e-9 <= mean <= max(values) + 1e-9
    assert moved == pytest.approx(mean + shift, abs=1e-6)
    assert same == pytest.approx(error, abs=1e-6)
    assert error >= 0
