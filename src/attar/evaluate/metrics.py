"""How good predicted class probabilities are; all arithmetic in float64."""

from __future__ import annotations

from typing import NamedTuple

import torch
from pydantic.dataclasses import dataclass
from torch import Tensor

from attar.errors import AttarError

BINS = 15


class Bin(NamedTuple):
    """One bar of a reliability diagram."""

    size: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Scores:
    """The scores of one posterior on one set of examples."""

    accuracy: float
    nll: float
    ece: float
    brier: float
    confusion: list[list[int]]  #: rows are true classes, columns predicted ones
    reliability: list[Bin]

    def __str__(self) -> str:
        return f"accuracy {self.accuracy:.3f}  nll {self.nll:.3f}  ece {self.ece:.3f}  brier {self.brier:.3f}"


def score(probabilities: Tensor, y: Tensor) -> Scores:
    """All scores of probabilities ``(n, classes)`` against true labels ``(n,)``."""
    p = check(probabilities, y)
    bins = reliability(p, y)
    return Scores(accuracy(p, y), nll(p, y), ece(bins), brier(p, y), confusion(p, y), bins)


def check(probabilities: Tensor, y: Tensor) -> Tensor:
    """The probabilities in float64, or an error that says why they are none."""
    p = probabilities.detach().double().cpu()
    if p.ndim != 2 or y.ndim != 1 or len(p) != len(y) or len(y) == 0:
        raise AttarError(
            f"Scores need (n, classes) probabilities and n labels, got {tuple(p.shape)}, {tuple(y.shape)}."
        )
    if int(y.min()) < 0 or int(y.max()) >= p.shape[1]:
        raise AttarError(f"Labels must lie in 0..{p.shape[1] - 1}, got {int(y.min())}..{int(y.max())}.")
    if not bool(((p >= 0) & torch.isfinite(p)).all()) or not torch.allclose(
        p.sum(1), torch.ones(len(p)).double(), atol=1e-4
    ):
        raise AttarError("Probabilities must be non-negative and sum to one in every row: pass softmax outputs.")
    return p


def accuracy(p: Tensor, y: Tensor) -> float:
    return float((p.argmax(1) == y).double().mean())


def nll(p: Tensor, y: Tensor) -> float:
    r"""Mean negative log-likelihood, :math:`-\frac1n \sum_i \log p_i(y_i)`, with log 0 cut at the smallest float."""
    picked = p.gather(1, y[:, None]).clamp_min(torch.finfo(torch.float32).tiny)
    return float(-picked.log().mean())


def brier(p: Tensor, y: Tensor) -> float:
    r""":math:`\frac1n \sum_i \sum_c (p_{ic} - [y_i = c])^2`, between 0 and 2."""
    return float((p - torch.nn.functional.one_hot(y, p.shape[1])).square().sum(1).mean())


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
    index = (confidence * bins).ceil().long().clamp(1, bins) - 1
    count = torch.bincount(index, minlength=bins)
    safe = count.clamp_min(1).double()
    mean_confidence = torch.zeros(bins).double().index_add_(0, index, confidence) / safe
    mean_correct = torch.zeros(bins).double().index_add_(0, index, correct) / safe
    return [Bin(int(n), float(c), float(a)) for n, c, a in zip(count, mean_confidence, mean_correct, strict=True)]


def ece(bins: list[Bin]) -> float:
    r"""Expected calibration error, :math:`\sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b|`."""
    total = sum(b.size for b in bins)
    return sum(b.size / total * abs(b.accuracy - b.confidence) for b in bins)
