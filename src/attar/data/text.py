"""Texts as sequences of tokens of one length."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attar.core.errors import AttarError
from attar.data.spec import Tokens
from attar.data.transform import Embedding
from attar.data.words import words

PADDING, UNKNOWN = "", "<unknown>"
RESERVED = 2  #: tokens before the first word: padding and the unknown word
MOST = 20_000  #: words in a vocabulary at most; rarer ones become unknown
LONGEST = 256  #: tokens per example at most
DIMENSION = 64  #: of hashed embeddings


@dataclass(frozen=True)
class Tokeniser:
    """Maps words to tokens; words not seen in training become the unknown token, shorter texts are padded."""

    element: Tokens

    @staticmethod
    def fit(texts: Sequence[str], length: int | None = None) -> Tokeniser:
        """The vocabulary of the training texts, and by default a length that 95 % of them do not exceed."""
        split = [words(text) for text in texts]
        counts = Counter(word for text in split for word in text)
        if length is None:
            lengths = sorted(len(text) for text in split)
            length = max(1, min(LONGEST, lengths[int(0.95 * (len(lengths) - 1))]))
        elif length < 1:
            raise AttarError(f"Texts need a length of at least one word, got {length}: give a larger length.")
        common = sorted(counts, key=lambda word: (-counts[word], word))[: MOST - RESERVED]
        return Tokeniser(Tokens(length, (PADDING, UNKNOWN, *common)))

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """Tokens ``(n, length)``."""
        place = {word: token for token, word in enumerate(self.element.vocabulary)}
        found = torch.zeros(len(texts), self.element.length, dtype=torch.int64)
        for row, text in zip(found, texts, strict=True):
            tokens = [place.get(word, 1) for word in words(text)[: self.element.length]]
            row[: len(tokens)] = torch.tensor(tokens, dtype=torch.int64)
        return found


def hashed(vocabulary: Sequence[str], dimension: int = DIMENSION) -> Embedding:
    """An embedding that depends only on the words: a fixed random unit vector for each; padding is zero."""
    table = torch.stack(list(_vectors(vocabulary, dimension)))
    return Embedding(table)


def _vectors(vocabulary: Sequence[str], dimension: int) -> Iterator[Tensor]:
    for word in vocabulary:
        seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=7).digest(), "big")
        vector = torch.randn(dimension, generator=torch.Generator().manual_seed(seed))
        yield torch.zeros(dimension) if word == PADDING else vector / vector.norm()
