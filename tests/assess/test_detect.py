"""AUROC is the share of pairs in the right order; leaving out doubtful answers leaves better ones."""

import pytest
import torch
from torch import Tensor

from attar.assess.detect import auroc, doubts, out_of_distribution, selective, tpr_at
from attar.core.errors import AttarError
from tests.known import generator


def t(*values: float) -> Tensor:
    return torch.tensor(values)


@pytest.mark.parametrize(
    ("negatives", "positives", "area"),
    [
        (t(0, 1), t(2, 3), 1.0),
        (t(2, 3), t(0, 1), 0.0),
        (t(1, 1, 1), t(1, 1), 0.5),
        (t(0, 2), t(1, 3), 0.75),
        (t(0, 1), t(1), 0.75),  # one pair in order, one tied
        (t(0), t(float("inf")), 1.0),
    ],
)
def test_auroc_worked_by_hand(negatives: Tensor, positives: Tensor, area: float) -> None:
    assert auroc(negatives, positives) == area
    assert auroc(positives, negatives) == 1 - area


@pytest.mark.parametrize("levels", [5, 100_000])
def test_auroc_is_the_count_over_all_pairs_and_scikit_learn_s(levels: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="the extra 'sklearn' is not installed")
    gen = generator()
    low, high = (torch.randint(levels, (n,), generator=gen).double() + k for n, k in ((300, 0), (170, levels / 10)))
    area = auroc(low, high)
    pairs = (high[:, None] > low).double() + 0.5 * (high[:, None] == low).double()
    assert area == pytest.approx(pairs.mean().item(), abs=1e-12)
    truth = torch.cat([torch.zeros(300), torch.ones(170)])
    assert area == pytest.approx(metrics.roc_auc_score(truth, torch.cat([low, high])), abs=1e-12)


@pytest.mark.parametrize(("fpr", "rate"), [(0, 0.25), (0.24, 0.25), (0.25, 0.5), (0.5, 1.0), (1, 1.0)])
def test_true_positives_at_a_false_positive_rate(fpr: float, rate: float) -> None:
    assert tpr_at(t(0, 1, 3, 5), t(2, 2.5, 4, 6), fpr) == rate


def test_tied_negatives_are_taken_together() -> None:
    # Below 5 come both 5s at once, so a quarter of the negatives cannot be had.
    assert tpr_at(t(0, 1, 5, 5), t(5, 5, 6), 0.25) == pytest.approx(1 / 3)
    assert tpr_at(torch.arange(100.0), t(70.5), 0.29) == 1.0
    assert tpr_at(torch.arange(100.0), t(69.5), 0.29) == 0.0  # 71 to 99 are 29 that may exceed


def test_a_posterior_that_doubts_strange_inputs_finds_them() -> None:
    inside, outside = torch.eye(3)[[0, 1, 2, 1]], torch.full((5, 3), 1 / 3)
    for doubt in ("entropy", "confidence"):
        assert out_of_distribution(inside, outside, doubt) == 1  # type: ignore[arg-type]
        assert out_of_distribution(inside, inside, doubt) == 0.5  # type: ignore[arg-type]


def test_doubts_worked_by_hand() -> None:
    p = torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])
    assert doubts(p, "confidence").tolist() == [0.5, 0, 0.25]
    assert doubts(p)[:2].tolist() == pytest.approx([0.6931471805599453, 0])
    assert doubts(p)[0] > doubts(p)[2] > doubts(p)[1]


def test_the_selective_curve_worked_by_hand() -> None:
    p = torch.tensor([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])
    curve = selective(p, torch.tensor([1, 0, 1, 1]))
    assert curve.coverage == [0.25, 0.5, 0.75, 1]
    assert curve.accuracy == pytest.approx([1, 1 / 2, 2 / 3, 3 / 4])
    assert curve.risk == pytest.approx([0, 1 / 2, 1 / 3, 1 / 4])
    assert curve.area == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_equal_confidences_are_kept_or_left_together() -> None:
    p, y = torch.tensor([[0.1, 0.9]] * 4), torch.tensor([1, 1, 0, 1])
    curve = selective(p, y)
    assert curve.coverage == [1]
    assert curve.area == pytest.approx(0.25)  # no better than the error rate
    assert selective(p, y.flip(0)) == curve


def test_an_area_of_zero_is_perfect_and_order_is_what_counts() -> None:
    confidence = torch.linspace(0.6, 0.99, 50)
    p = torch.stack([1 - confidence, confidence], 1)
    assert selective(p, torch.ones(50).long()).area == 0
    good, bad = (torch.arange(50) >= 25).long(), (torch.arange(50) < 25).long()  # half wrong, the unsure or the sure
    assert selective(p, good).area < 0.25 < 0.5 < selective(p, bad).area


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(AttarError, match="AUROC is undefined without examples of both kinds"):
        auroc(t(1, 2), t())
    with pytest.raises(AttarError, match="true-positive rate is undefined"):
        tpr_at(t(), t(1))
    with pytest.raises(AttarError, match="not a number"):
        auroc(t(1, float("nan")), t(1))
    with pytest.raises(AttarError, match="between 0 and 1"):
        tpr_at(t(1), t(1), 1.5)
    p = torch.eye(3)
    with pytest.raises(AttarError, match="3 classes, those outside 2"):
        out_of_distribution(p, torch.eye(2))
    with pytest.raises(AttarError, match="n at least 1"):
        out_of_distribution(p, torch.zeros(0, 3))
    with pytest.raises(AttarError, match="sum to one"):
        doubts(2 * p)
    with pytest.raises(AttarError, match="did you mean 'entropy'"):
        doubts(p, "entropie")  # type: ignore[arg-type]
    with pytest.raises(AttarError, match="Scores need"):
        selective(p, torch.tensor([0]))
