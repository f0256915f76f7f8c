"""Word vectors from a text file in the format of GloVe: a word and its numbers on every line."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attar.core import budget
from attar.core.errors import AttarError
from attar.data.text import RESERVED, hashed
from attar.data.transform import Embedding

LONGEST = 1 << 20  #: bytes of a line


class Line(NamedTuple):
    """A line of the file, not yet parsed."""

    number: int  #: from 1
    word: bytes
    values: bytes


def read_vectors(path: Path, vocabulary: Sequence[str], counts: Tensor) -> Embedding:
    """The vectors of a vocabulary; only its rows are kept while the file is read line by line.

    Words without a vector get a hashed one of the median length, and a warning says how many there are.

    Args:
        path: The file: ``word v1 v2 ...`` on every line. A first line ``words dimension``, as word2vec writes it, is
            skipped.
        vocabulary: The words, padding and the unknown word first.
        counts: How often each of them occurs in the training texts, ``(vocabulary,)``.
    """
    place = {word.encode(): token for token, word in enumerate(vocabulary) if token >= RESERVED}
    found: dict[int, NDArray[np.float32]] = {}
    try:
        with path.open("rb") as file:
            for line in _lines(file, path):
                token = place.get(line.word)
                if token is not None and token not in found:
                    budget.claim(8 * len(line.values), str(path))
                    found[token] = _numbers(line, path)
    except OSError as error:
        raise AttarError(f"The word vectors {path} cannot be read ({error.strerror}): check the path.") from error
    if not found:
        raise AttarError(
            f"{path} has a vector for none of the {len(place):,} words of the training texts: give vectors of the same "
            "language, in lower case."
        )
    known = torch.from_numpy(np.stack(list(found.values())))
    return completed(vocabulary, list(found), known, counts, f"in {path.name}")


def completed(vocabulary: Sequence[str], tokens: Sequence[int], known: Tensor, counts: Tensor, where: str) -> Embedding:
    """Known vectors, and hashed ones of the median length for all other words, with a warning that counts these.

    Args:
        vocabulary: The words, padding and the unknown word first.
        tokens: Those with a vector.
        known: Their vectors, ``(tokens, dimension)``.
        counts: How often each word of the vocabulary occurs in the training texts.
        where: Where a word of the warning has no vector, such as ``in glove.txt``.
    """
    table = hashed(vocabulary, known.shape[1]).table * known.norm(dim=1).median()
    table[list(tokens)] = known
    missing = sorted(set(range(RESERVED, len(vocabulary))) - set(tokens))
    if missing:
        share = float(counts[missing].sum() / counts[RESERVED:].sum())
        warnings.warn(
            f"{len(missing):,} of the {len(vocabulary) - RESERVED:,} words in the vocabulary ({100 * share:.1f} % of "
            f"the running words) have no vector {where}: they get hashed vectors.",
            stacklevel=2,
        )
    return Embedding(table)


def _lines(file: BinaryIO, path: Path) -> Iterator[Line]:
    """Every line with a word, checked for its encoding and number of values."""
    dimension: int | None = None
    for number, raw in enumerate(iter(partial(file.readline, LONGEST), b""), 1):
        if len(raw) == LONGEST:
            raise AttarError(f"Line {number} of {path} is longer than {LONGEST:,} bytes: give a file of word vectors.")
        text = raw.strip(b" \r\n")
        if not text:
            continue
        size = text.count(b" ")
        if number == 1 and size == 1 and all(part.isdigit() for part in text.split(b" ")):
            continue
        dimension = size if dimension is None else dimension
        word = text.partition(b" ")[0] if size == dimension else text.rsplit(b" ", dimension)[0]
        if not dimension or size < dimension or (size > dimension and _is_number(word.rpartition(b" ")[2])):
            raise AttarError(
                f"Line {number} of {path} has {size} numbers where the first has {dimension or 'none'}: give a text "
                "file with a word and equally many numbers on every line, such as glove.6B.100d.txt."
            )
        try:
            word.decode()
        except UnicodeDecodeError as error:
            raise AttarError(f"Line {number} of {path} is not text in UTF-8: save the vectors in UTF-8.") from error
        yield Line(number, word, text[len(word) :])


def _is_number(part: bytes) -> bool:
    """Whether a line has too many numbers; if not, its word has several parts, as a few of GloVe have."""
    try:
        float(part)
    except ValueError:
        return False
    return True


def _numbers(line: Line, path: Path) -> NDArray[np.float32]:
    try:
        numbers = np.array(line.values.strip(b" ").split(b" "), dtype=np.float32)
    except ValueError:
        numbers = np.array([np.nan], dtype=np.float32)
    if not np.isfinite(numbers).all():
        raise AttarError(f"Line {line.number} of {path} holds a value that is not a finite number: repair the file.")
    return numbers
