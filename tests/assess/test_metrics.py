from dataclasses import replace
from math import log
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor

from attar.assess.metrics import (
    BINS,
    Scores,
    accuracy,
    check_rows,
    ece,
    ece_floor,
    entropy,
    equal_mass,
    reliability,
    score,
)
from attar.core.errors import AttarError
from tests.known import generator

HALF = torch.tensor([0, 1, 0, 1])


def rows(*probabilities: float) -> Tensor:
    """Two-class predictions from the probability of class 1."""
    ones = torch.tensor(probabilities, dtype=torch.float64)
    return torch.stack([1 - ones, ones], 1)


def random(n: int, classes: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    gen = generator(seed)
    p = (2 * torch.randn(n, classes, generator=gen)).softmax(1).double()
    return p / p.sum(1, keepdim=True), torch.randint(classes, (n,), generator=gen)


def test_a_perfect_predictor() -> None:
    s = score(torch.eye(3)[[0, 2, 1, 1]], torch.tensor([0, 2, 1, 1]))
    assert (s.accuracy, s.nll, s.ece, s.brier) == (1, 0, 0, 0)
    assert s.confusion == [[1, 0, 0], [0, 2, 0], [0, 0, 1]]


def test_a_predictor_that_knows_nothing() -> None:
    s = score(torch.full((30, 10), 0.1), torch.arange(30) % 10)
    assert s.accuracy == pytest.approx(0.1)
    assert s.nll == pytest.approx(log(10))
    assert s.brier == pytest.approx(0.9)
    assert s.ece == pytest.approx(0, abs=1e-6)  # it says 10 % and is right in 10 %


def test_a_predictor_that_is_sure_and_half_wrong() -> None:
    s = score(rows(1, 1, 1, 1), HALF)
    assert s.accuracy == 0.5
    assert s.ece == pytest.approx(0.5)
    assert s.brier == pytest.approx(1)  # (0 + 2) / 2
    assert 40 < s.nll < 45  # log 0 is cut at the smallest float: half of 87.3
    assert s.confusion == [[0, 2], [0, 2]]


def test_a_case_worked_by_hand() -> None:
    s = score(rows(0.9, 0.8, 0.3, 0.4), torch.tensor([1, 0, 0, 1]))
    assert s.accuracy == 0.5
    assert s.nll == pytest.approx(-(log(0.9) + log(0.2) + log(0.7) + log(0.4)) / 4)
    assert s.brier == pytest.approx(2 * (0.01 + 0.64 + 0.09 + 0.36) / 4)
    # Confidences 0.9, 0.8, 0.7, 0.6 lie in bins of their own: gaps 0.1, 0.8, 0.3, 0.6.
    assert s.ece == pytest.approx((0.1 + 0.8 + 0.3 + 0.6) / 4)
    assert s.confusion == [[1, 1], [1, 1]]
    assert repr(s) == f"Scores({s})"
    assert str(s) == "accuracy 0.500  balanced 0.500  worst class 0.500  nll 0.747  ece 0.450  brier 0.550"


def test_rare_classes_count_as_much_as_others_in_balanced_accuracy() -> None:
    p = torch.eye(3)[[0] * 8 + [0, 1]]  # eight of class 0 right, one of two of class 1
    s = score(p, torch.tensor([0] * 8 + [1, 1]))
    assert s.accuracy == pytest.approx(0.9)
    assert s.balanced == pytest.approx(0.75)  # of the two classes that there are
    assert s.worst == 0.5
    assert (s.share(0), s.share(1), s.share(2)) == (0.8, 0.2, 0)


def test_the_floor_of_the_ece_is_what_a_calibrated_predictor_scores() -> None:
    p, _ = random(400, 4)
    confidence = p.max(1).values
    measured = []
    for seed in range(60):  # labels that are right as often as the predictor is confident
        right = torch.rand(400, generator=generator(seed)).double() < confidence
        y = torch.where(right, p.argmax(1), p.argmin(1))
        measured.append(score(p, y).ece)
    floor = score(p, p.argmax(1)).ece_floor
    assert floor is not None
    assert floor == pytest.approx(sum(measured) / 60, rel=0.1)
    assert floor == score(p, p.argmin(1)).ece_floor  # whatever the labels are
    assert ece_floor(p.repeat(100, 1)) < floor / 5  # it vanishes with the size of the test set
    assert ece_floor(torch.eye(3).double()) == 0


def test_errors_of_one_bin_cancel_and_those_of_two_do_not() -> None:
    one = score(rows(0.95, 0.95), torch.tensor([1, 0]))
    assert one.ece == pytest.approx(0.45)  # |0.5 − 0.95|
    two = score(rows(0.95, 0.61), torch.tensor([1, 0]))
    assert two.ece == pytest.approx((0.05 + 0.61) / 2)


@pytest.mark.parametrize("k", range(1, BINS + 1))
@pytest.mark.parametrize("below", [0, 0.2, 0.9])
def test_a_bin_reaches_from_above_its_lower_edge_to_its_upper_edge(k: int, below: float) -> None:
    confidence = (k - below) / BINS
    p = torch.tensor([[confidence, *[(1 - confidence) / 999] * 999]], dtype=torch.float64)
    bins = reliability(p, torch.tensor([0]))
    assert [b.size for b in bins].index(1) == k - 1


@pytest.mark.parametrize(("confidence", "place"), [(0.0, 0), (1.0, BINS - 1), (1 + 5e-5, BINS - 1)])
def test_nothing_falls_out_of_the_first_and_last_bin(confidence: float, place: int) -> None:
    # Rows may sum to a little more than one, as those of float32 do.
    bins = reliability(torch.tensor([[confidence, 0.0]], dtype=torch.float64), torch.tensor([0]))
    assert [b.size for b in bins] == [int(k == place) for k in range(BINS)]
    assert bins[place] == (1, confidence, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_ece_is_its_definition(seed: int) -> None:
    p, y = random(500, 4, seed)
    confidence, predicted = p.max(1)
    total = 0.0
    for low in range(BINS):
        inside = (confidence > low / BINS) & (confidence <= (low + 1) / BINS)
        if inside.any():
            right = (predicted == y)[inside].double().mean()
            total += inside.double().mean().item() * abs(right - confidence[inside].mean()).item()
    assert score(p, y).ece == pytest.approx(total, abs=1e-12)


def torchmetrics_ece(p: Tensor, y: Tensor) -> float:
    metrics: Any = pytest.importorskip("torchmetrics.functional.classification", reason="torchmetrics is not installed")
    return float(metrics.multiclass_calibration_error(p, y, p.shape[1], n_bins=BINS, norm="l1"))


@pytest.mark.parametrize(("n", "classes", "seed"), [(500, 4, 0), (2000, 10, 1), (7, 3, 2), (1, 2, 3), (300, 2, 4)])
def test_ece_agrees_with_torchmetrics(n: int, classes: int, seed: int) -> None:
    p, y = random(n, classes, seed)
    assert score(p, y).ece == pytest.approx(torchmetrics_ece(p, y), abs=1e-6)


@pytest.mark.parametrize(
    ("p", "y"),
    [
        (torch.eye(3)[[0, 1, 2, 2]], [0, 1, 2, 2]),
        (torch.eye(3)[[0, 1, 2, 2]], [1, 1, 0, 2]),
        (torch.full((6, 4), 0.25), [0, 1, 2, 3, 0, 0]),
        (torch.tensor([[0.5, 0.5], [0.5, 0.5]]), [0, 1]),
    ],
    ids=["all right", "sure and half wrong", "uniform", "ties"],
)
def test_ece_agrees_with_torchmetrics_where_confidences_are_all_alike(p: Tensor, y: list[int]) -> None:
    assert score(p, torch.tensor(y)).ece == pytest.approx(torchmetrics_ece(p, torch.tensor(y)), abs=1e-6)


def test_ece_agrees_with_torchmetrics_a_hair_below_the_edges() -> None:
    # Its bins are [a, b), and a sixteenth one holds 1 alone; ours are (a, b], as Guo et al. have them.
    edges = torch.arange(2, BINS + 1).double() / BINS
    on = torch.stack([edges, *[(1 - edges) / 19] * 19], 1)
    below = torch.stack([edges - 1e-6, *[(1 - edges + 1e-6) / 19] * 19], 1)
    y = torch.arange(len(edges)) % 3
    assert score(on, y).ece == pytest.approx(torchmetrics_ece(below, y), abs=2e-6)


def test_a_calibrated_predictor_has_an_ece_near_zero() -> None:
    p, _ = random(20_000, 5)
    y = torch.multinomial(p, 1, generator=generator(1)).flatten()
    assert score(p, y).ece < 0.015
    sharper = p**3 / (p**3).sum(1, keepdim=True)
    assert score(sharper, y).ece > 0.1


def test_scores_agree_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="the extra 'sklearn' is not installed")
    p, y = random(200, 4)
    s = score(p, y)
    assert s.accuracy == pytest.approx(metrics.accuracy_score(y, p.argmax(1)))
    assert s.nll == pytest.approx(metrics.log_loss(y, p.numpy()))
    assert s.confusion == metrics.confusion_matrix(y, p.argmax(1)).tolist()


def test_the_bars_of_the_diagram_hold_every_example_once() -> None:
    p, y = random(300, 4)
    bins = reliability(p, y)
    assert len(bins) == BINS
    assert sum(b.size for b in bins) == 300
    assert sum(b.size * b.accuracy for b in bins) / 300 == pytest.approx(accuracy(p, y))
    assert sum(b.size * b.confidence for b in bins) / 300 == pytest.approx(p.max(1).values.mean().item())
    assert ece(bins) == score(p, y).ece


@pytest.mark.parametrize(
    ("p", "y", "message"),
    [
        (torch.tensor([[0.5, 0.6]]), torch.tensor([0]), "sum to one"),
        (torch.tensor([[2.0, -1.0]]), torch.tensor([0]), "non-negative"),
        (torch.tensor([[torch.nan, 1.0]]), torch.tensor([0]), "pass softmax outputs"),
        (torch.tensor([[torch.inf, 1.0]]), torch.tensor([0]), "pass softmax outputs"),
        (torch.randn(3, 2), torch.tensor([0, 1, 1]), "pass softmax outputs"),
        (rows(0.5, 0.5), torch.tensor([0, 2]), r"Labels must lie in 0\.\.1, got 0\.\.2"),
        (rows(0.5, 0.5), torch.tensor([-1, 0]), r"Labels must lie in 0\.\.1, got -1\.\.0"),
        (rows(0.5, 0.5), torch.tensor([0]), "Scores need"),
        (rows(0.5), torch.tensor([[0, 1]]), "Scores need"),
        (torch.zeros(0, 2), torch.zeros(0).long(), "Scores need"),
    ],
)
def test_what_is_no_prediction_is_refused(p: Tensor, y: Tensor, message: str) -> None:
    with pytest.raises(AttarError, match=message):
        score(p, y)


def test_the_rounding_of_float32_is_forgiven() -> None:
    p, y = random(100, 50)
    assert score(p.float(), y).nll == pytest.approx(score(p, y).nll, rel=1e-5)


def test_adaptive_bins_hold_as_many_examples_each_and_in_order() -> None:
    p, y = random(100, 4)
    bins = equal_mass(p, y)
    assert [b.size for b in bins] == [7] * 10 + [6] * 5
    assert [b.confidence for b in bins] == sorted(b.confidence for b in bins)
    assert sum(b.size * b.accuracy for b in bins) / 100 == pytest.approx(accuracy(p, y))


def test_adaptive_ece_worked_by_hand() -> None:
    # Two bins: confidences 0.6, 0.7 with one right, and 0.8, 0.9 with both right.
    p, y = rows(0.9, 0.6, 0.8, 0.7), torch.tensor([1, 0, 1, 1])
    assert ece(equal_mass(p, y, 2)) == pytest.approx((abs(0.5 - 0.65) + abs(1 - 0.85)) / 2)
    # One bin each, as there are fewer examples than bins.
    assert score(p, y).adaptive_ece == pytest.approx((0.1 + 0.6 + 0.2 + 0.3) / 4)


def test_adaptive_ece_of_one_confidence_is_the_ece_in_whatever_order_examples_come() -> None:
    p, y = rows(*[0.7] * 40), torch.tensor([1] * 10 + [0] * 30)
    for order in (torch.arange(40), torch.arange(40).flip(0), torch.randperm(40, generator=generator())):
        assert score(p, y[order]).adaptive_ece == pytest.approx(0.45)


def test_entropy_is_zero_if_sure_and_the_logarithm_of_the_classes_if_not() -> None:
    assert entropy(torch.eye(4).double()).tolist() == [0] * 4
    assert score(torch.full((3, 10), 0.1), torch.tensor([0, 1, 2])).entropy == pytest.approx(log(10))
    assert entropy(rows(0.25)).item() == pytest.approx(-(0.25 * log(0.25) + 0.75 * log(0.75)))


def test_accuracy_by_class_has_nothing_to_say_of_a_class_that_is_not_there() -> None:
    s = score(torch.eye(3)[[0, 2, 2, 2]], torch.tensor([0, 0, 2, 2]))
    assert s.per_class == [0.5, None, 1.0]


def test_scores_written_before_the_new_fields_still_load() -> None:
    kind = TypeAdapter(Scores)
    new = score(*random(50, 3))
    written = kind.dump_python(new, mode="json")
    assert kind.validate_python(written) == new
    old = {key: value for key, value in written.items() if key not in ("adaptive_ece", "entropy")}
    assert kind.validate_python(old) == replace(new, adaptive_ece=None, entropy=None)


@pytest.mark.parametrize("p", [torch.zeros(0, 3), torch.ones(3), torch.full((2, 2), 0.6), torch.tensor([[1.5, -0.5]])])
def test_rows_that_are_no_probabilities_are_refused_without_labels_too(p: Tensor) -> None:
    with pytest.raises(AttarError, match=r"must have shape|sum to one"):
        check_rows(p)
