"""Out-of-distribution detection and selective prediction by uncertainty."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from attar.assess.metrics import check, check_rows, entropy
from attar.core.errors import AttarError, unknown

Doubt = Literal["entropy", "confidence"]


class Selective(NamedTuple):
    """Accuracy if only the most confident predictions are kept, one point per distinct confidence."""

    coverage: list[float]  #: share of the examples that are kept, rising to 1
    accuracy: list[float]  #: among those kept
    area: float  #: under risk (1 − accuracy) over coverage: 0 is best; the error rate is chance level

    @property
    def risk(self) -> list[float]:
        """Error rate among those kept."""
        return [1 - a for a in self.accuracy]


def out_of_distribution(inside: Tensor, outside: Tensor, doubt: Doubt = "entropy") -> float:
    """AUROC of out-of-distribution detection by the uncertainty of predictions: 1 is perfect, ½ is chance.

    Args:
        inside: Predictions on in-distribution inputs, ``(n, classes)``.
        outside: Predictions of the same posterior on out-of-distribution inputs, ``(m, classes)``.
        doubt: ``entropy`` of the prediction, or ``confidence``, which is one minus the largest probability.
    """
    if inside.ndim == outside.ndim == 2 and inside.shape[1] != outside.shape[1]:
        raise AttarError(
            f"In-distribution predictions have {inside.shape[1]} classes, those outside {outside.shape[1]}: "
            "use the same posterior for both."
        )
    return auroc(doubts(inside, doubt), doubts(outside, doubt))


def doubts(probabilities: Tensor, doubt: Doubt = "entropy") -> Tensor:
    """The uncertainty of each prediction, ``(n,)``."""
    if doubt not in ("entropy", "confidence"):
        raise unknown("doubt", doubt, ("entropy", "confidence"))
    p = check_rows(probabilities)
    return entropy(p) if doubt == "entropy" else 1 - p.max(1).values


def auroc(negatives: Tensor, positives: Tensor) -> float:
    r"""Area under the ROC curve, as the exact rank statistic.

    .. math:: P(s^+ > s^-) + \tfrac12 P(s^+ = s^-)

    over all pairs of a positive's and a negative's score.
    """
    low, high = _two_kinds(negatives, positives, "AUROC")
    below = torch.searchsorted(low, high).double().mean()
    up_to = torch.searchsorted(low, high, right=True).double().mean()
    return float(below + up_to) / (2 * len(low))


def tpr_at(negatives: Tensor, positives: Tensor, fpr: float = 0.01) -> float:
    """The largest share of positives above a threshold that at most a share ``fpr`` of the negatives exceed."""
    if not 0 <= fpr <= 1:
        raise AttarError(f"fpr is a share of the negatives and must lie between 0 and 1, got {fpr}.")
    low, high = _two_kinds(negatives, positives, "A true-positive rate")
    spared = int(fpr * len(low) + 1e-9)  # 0.29 · 100 is 28.999…
    return 1.0 if spared >= len(low) else float((high > low[-1 - spared]).double().mean())


def selective(probabilities: Tensor, y: Tensor) -> Selective:
    r"""Selective prediction: accuracy if only predictions with high confidence are kept.

    Geifman & El-Yaniv, Selective Classification for Deep Neural Networks, NeurIPS 2017. Examples of equal confidence
    are kept or dropped together. The area is :math:`\sum_j (c_j - c_{j-1})\, r_j` over coverages c and risks r.
    """
    confidence, predicted = (p := check(probabilities, y)).max(1)
    level, of, count = (-confidence).unique(return_inverse=True, return_counts=True)
    right = torch.zeros_like(level).index_add_(0, of, (predicted == y).double()).cumsum(0)
    kept = count.cumsum(0)
    accuracy = right / kept
    area = float((count / len(p) * (1 - accuracy)).sum())
    return Selective((kept / len(p)).tolist(), accuracy.tolist(), area)


def _two_kinds(negatives: Tensor, positives: Tensor, what: str) -> tuple[Tensor, Tensor]:
    """Both scores in float64 and sorted."""
    scores = [s.detach().double().cpu() for s in (negatives, positives)]
    if any(s.ndim != 1 or len(s) == 0 for s in scores):
        raise AttarError(
            f"{what} is undefined without examples of both kinds, got scores of shapes {tuple(negatives.shape)} and "
            f"{tuple(positives.shape)}: pass at least one of each."
        )
    if any(bool(s.isnan().any()) for s in scores):
        raise AttarError(f"{what} needs scores that can be ranked, but some are not a number: check the predictions.")
    return scores[0].sort().values, scores[1].sort().values
