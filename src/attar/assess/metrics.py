"""Scores of predicted class probabilities, in float64."""

from __future__ import annotations

from math import sqrt
from statistics import mean, stdev
from typing import Annotated, NamedTuple

import torch
from pydantic import AfterValidator, ConfigDict
from pydantic.dataclasses import dataclass
from torch import Tensor

from attar.core.errors import AttarError

BINS = 15
DRAWS = 100  #: simulated sets of labels behind the floor of the ECE
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)  #: for files that are read back
TINY = torch.finfo(torch.float32).tiny  #: smallest probability in a logarithm


class Bin(NamedTuple):
    """One bar of a reliability diagram."""

    size: int
    confidence: float
    accuracy: float


def _counts(table: list[list[int]]) -> list[list[int]]:
    if any(len(row) != len(table) or min(row) < 0 for row in table) or not sum(map(sum, table)):
        raise ValueError("a confusion matrix has a row and a column for each class, and counts of examples")
    return table


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class Scores:
    """The scores of one posterior on one set of examples."""

    accuracy: float
    nll: float
    ece: float
    brier: float
    confusion: Annotated[list[list[int]], AfterValidator(_counts)]  #: rows are true classes, columns predicted ones
    reliability: list[Bin]
    adaptive_ece: float | None = None  #: None in older files, like ``entropy``
    entropy: float | None = None  #: mean entropy of the predictions, in nats
    ece_floor: float | None = None  #: ECE that perfect calibration would have on as many examples; None in older files

    @property
    def per_class(self) -> list[float | None]:
        """Accuracy per class; None for a class without examples."""
        return [row[c] / sum(row) if sum(row) else None for c, row in enumerate(self.confusion)]

    @property
    def balanced(self) -> float:
        """Balanced accuracy: the mean of the classes' accuracies, so that rare classes count as much as others."""
        return mean(share for share in self.per_class if share is not None)

    @property
    def worst(self) -> float:
        """Accuracy of the class where it is lowest, which is the worst recall of a class."""
        return min(share for share in self.per_class if share is not None)

    def share(self, label: int) -> float:
        """The share of examples of a class: the accuracy of always answering it."""
        return sum(self.confusion[label]) / sum(map(sum, self.confusion))

    def __str__(self) -> str:
        return (
            f"accuracy {self.accuracy:.3f}  balanced {self.balanced:.3f}  worst class {self.worst:.3f}  "
            f"nll {self.nll:.3f}  ece {self.ece:.3f}  brier {self.brier:.3f}"
        )

    def __repr__(self) -> str:
        return f"Scores({self})"


def score(probabilities: Tensor, y: Tensor) -> Scores:
    """All scores of probabilities ``(n, classes)`` against true labels ``(n,)``."""
    p = check(probabilities, y)
    bins = reliability(p, y)
    return Scores(
        accuracy(p, y),
        nll(p, y),
        ece(bins),
        brier(p, y),
        confusion(p, y),
        bins,
        ece(equal_mass(p, y)),
        float(entropy(p).mean()),
        ece_floor(p),
    )


def check(probabilities: Tensor, y: Tensor) -> Tensor:
    """The probabilities in float64, or an error if they are invalid."""
    if probabilities.ndim != 2 or y.ndim != 1 or len(probabilities) != len(y) or len(y) == 0:
        raise AttarError(
            f"Scores need (n, classes) probabilities and n labels, got {tuple(probabilities.shape)}, {tuple(y.shape)}."
        )
    p = check_rows(probabilities)
    if int(y.min()) < 0 or int(y.max()) >= p.shape[1]:
        raise AttarError(f"Labels must lie in 0..{p.shape[1] - 1}, got {int(y.min())}..{int(y.max())}.")
    return p


def check_rows(probabilities: Tensor) -> Tensor:
    """The same without labels: at least one row of non-negative numbers that sum to one."""
    p = probabilities.detach().double().cpu()
    if p.ndim != 2 or len(p) == 0:
        raise AttarError(f"Predictions must have shape (n, classes) with n at least 1, got {tuple(p.shape)}.")
    if not bool(((p >= 0) & torch.isfinite(p)).all()) or not torch.allclose(
        p.sum(1), torch.ones(len(p)).double(), atol=1e-4
    ):
        raise AttarError("Probabilities must be non-negative and sum to one in every row: pass softmax outputs.")
    return p


def accuracy(p: Tensor, y: Tensor) -> float:
    return float((p.argmax(1) == y).double().mean())


def nll(p: Tensor, y: Tensor) -> float:
    r"""Mean negative log-likelihood, :math:`-\frac1n \sum_i \log p_i(y_i)`, log 0 taken at the smallest float."""
    picked = p.gather(1, y[:, None]).clamp_min(TINY)
    return float(-picked.log().mean())


def brier(p: Tensor, y: Tensor) -> float:
    r""":math:`\frac1n \sum_i \sum_c (p_{ic} - [y_i = c])^2`, between 0 and 2."""
    return float((p - torch.nn.functional.one_hot(y, p.shape[1])).square().sum(1).mean())


def entropy(p: Tensor) -> Tensor:
    r"""Entropy of every prediction in nats, :math:`-\sum_c p_c \log p_c`: 0 if certain, log(classes) if uniform."""
    terms: Tensor = torch.special.entr(p)
    return terms.sum(1)


def confusion(p: Tensor, y: Tensor) -> list[list[int]]:
    classes = p.shape[1]
    counts: list[list[int]] = (
        torch.bincount(y * classes + p.argmax(1), minlength=classes**2).reshape(classes, -1).tolist()
    )
    return counts


def reliability(p: Tensor, y: Tensor, bins: int = BINS) -> list[Bin]:
    """Examples binned by confidence into ``bins`` intervals (a, b] of equal width."""
    confidence, predicted = p.max(1)
    correct = (predicted == y).double()
    index = _bin(confidence, bins)
    count = torch.bincount(index, minlength=bins)
    safe = count.clamp_min(1).double()
    mean_confidence = torch.zeros(bins).double().index_add_(0, index, confidence) / safe
    mean_correct = torch.zeros(bins).double().index_add_(0, index, correct) / safe
    return [Bin(int(n), float(c), float(a)) for n, c, a in zip(count, mean_confidence, mean_correct, strict=True)]


def _bin(confidence: Tensor, bins: int) -> Tensor:
    return (confidence * bins).ceil().long().clamp(1, bins) - 1


def equal_mass(p: Tensor, y: Tensor, bins: int = BINS) -> list[Bin]:
    """Examples sorted by confidence and split into ``bins`` of equal size, as far as possible.

    Nguyen & O'Connor, Posterior calibration and exploratory analysis for NLP models, EMNLP 2015. Examples with the
    same confidence all get their mean accuracy, so that their order does not matter.
    """
    confidence, predicted = p.max(1)
    level, of, count = confidence.unique(return_inverse=True, return_counts=True)
    right = torch.zeros_like(level).index_add_(0, of, (predicted == y).double()) / count
    parts = level.repeat_interleave(count), right.repeat_interleave(count)
    groups = zip(*(part.tensor_split(min(bins, len(p))) for part in parts), strict=True)
    return [Bin(len(c), float(c.mean()), float(r.mean())) for c, r in groups]


def ece(bins: list[Bin]) -> float:
    r"""Expected calibration error, :math:`\sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b|`."""
    total = sum(b.size for b in bins)
    return sum(b.size / total * abs(b.accuracy - b.confidence) for b in bins)


def ece_floor(p: Tensor, bins: int = BINS) -> float:
    r"""The mean ECE of a perfectly calibrated predictor with these confidences c on as many examples.

    .. math:: E \sum_b \tfrac{1}{n} \Big|\sum_{i \in b} (r_i - c_i)\Big|, \quad r_i \sim \mathrm{Bernoulli}(c_i)

    It is not zero, since the share of right answers in a bin of few examples varies. Simulated, always with the same
    random numbers.
    """
    confidence = p.max(1).values.sort().values  # so that the order of the examples does not matter
    gen = torch.Generator().manual_seed(0)
    index, total = _bin(confidence, bins), 0.0
    for _ in range(DRAWS):
        right = torch.rand(len(p), generator=gen, dtype=torch.float64) < confidence
        gaps = torch.zeros(bins).double().index_add_(0, index, right.double() - confidence)
        total += float(gaps.abs().sum())
    return total / (DRAWS * len(p))


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean and standard error of the mean (0 for a single value, whose spread is unknown)."""
    return mean(values), stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
