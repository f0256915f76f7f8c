"""Word vectors learnt from the training texts: words are alike that occur with the same words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from attar.core.errors import AttarError
from attar.data.text import RESERVED
from attar.data.transform import Embedding
from attar.data.vectors import completed
from attar.data.words import words

LEARNT = "learnt"  #: the name of these vectors in place of a file; a file of this name is ``./learnt``
WINDOW = 5  #: words on either side that occur with a word
DIMENSION = 50  #: at most
MOST = 5_000  #: words with a learnt vector, the most frequent ones; the matrix of all pairs then takes 200 MB
TEXTS = 1_000  #: whose pairs are counted at once
SPREAD = 0.5  #: root mean square of the numbers in a vector, about that of GloVe's
ROUNDS, SPARE = 10, 14  #: of subspace iteration: steps, and vectors beside those that are asked for


def learn_vectors(texts: Sequence[str], vocabulary: Sequence[str], counts: Tensor) -> Embedding:
    r"""The singular vectors of positive pointwise mutual information (Levy & Goldberg, NeurIPS 2014).

    .. math:: M_{ij} = \max\Big(0, \log \frac{n_{ij}\, n}{n_i\, n_j}\Big) \approx U S V^\top, \quad E = U S^{1/2}

    where :math:`n_{ij}` says how often words i and j are at most five words apart. Each singular vector has the sign
    that makes its largest number positive. Words without a learnt vector, which are rare or occur with no other word
    more often than by chance, get a hashed one of the median length, and a warning says how many there are.

    Args:
        texts: The training texts.
        vocabulary: The words, padding and the unknown word first, then the most frequent.
        counts: How often each of them occurs in the training texts, ``(vocabulary,)``.
    """
    common = vocabulary[RESERVED : RESERVED + MOST]
    matrix = _information(_pairs(texts, common))
    rows = matrix.any(1).nonzero().flatten()
    if not len(rows):
        raise AttarError(
            "No vectors can be learnt from the training texts, as no words occur together more often than by chance: "
            "leave vectors out, or give a file of word vectors."
        )
    values, basis = _eigen(matrix, DIMENSION)
    known = (matrix @ (basis / values.abs().sqrt()))[rows]
    known *= known.gather(0, known.abs().argmax(0, keepdim=True)).sign()
    known *= SPREAD / known.square().mean().sqrt()
    return completed(vocabulary, (rows + RESERVED).tolist(), known.float(), counts, "learnt from the training texts")


def _pairs(texts: Sequence[str], common: Sequence[str]) -> Tensor:
    """How often each pair of words is at most ``WINDOW`` words apart in a text, ``(n, n)``, symmetric."""
    n = len(common)
    total = torch.zeros(n * n, dtype=torch.float64)
    for line in _lines(texts, {word: place for place, word in enumerate(common)}):
        for gap in range(1, WINDOW + 1):
            left, right = line[:-gap], line[gap:]
            both = (left >= 0) & (right >= 0)
            left, right = left[both], right[both]
            ones = torch.ones(len(left), dtype=torch.float64)
            total.index_add_(0, left * n + right, ones).index_add_(0, right * n + left, ones)
    return total.view(n, n)


def _lines(texts: Sequence[str], place: dict[str, int]) -> Iterator[Tensor]:
    """The places of the words of many texts in a row; -1 stands for other words and for gaps between texts."""
    for start in range(0, len(texts), TEXTS):
        found = [[place.get(word, -1) for word in words(text)] for text in texts[start : start + TEXTS]]
        yield torch.tensor([token for text in found for token in (*text, *[-1] * WINDOW)])


def _information(pairs: Tensor) -> Tensor:
    """Positive pointwise mutual information, in the memory of the counts."""
    each = pairs.sum(1)
    expected = each.clamp_min(1)
    return pairs.mul_(each.sum()).div_(expected).div_(expected[:, None]).log_().clamp_min_(0)


def _eigen(matrix: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The eigenvalues of a symmetric matrix that are largest in size, without zeros, and their vectors as columns.

    By subspace iteration from a fixed start: of a symmetric matrix, these are the largest singular values.
    """
    start = torch.randn(
        len(matrix), min(len(matrix), most + SPARE), generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    basis = torch.linalg.qr(start)[0]
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(matrix @ basis)[0]
    values, inner = torch.linalg.eigh(basis.T @ matrix @ basis)
    order = values.abs().argsort(descending=True)[:most]
    order = order[values[order].abs() > 1e-9 * values.abs().max()]
    return values[order], basis @ inner[:, order]
