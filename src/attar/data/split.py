"""Train, validation and test sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass as validated
from torch import Generator, Tensor

from attar.core.errors import AttarError, number
from attar.data import tables, text
from attar.data.cooccurrence import learn_vectors
from attar.data.damage import Damage, damaged
from attar.data.data import Data
from attar.data.raw import Raw, RawSplit, check, is_text
from attar.data.spec import Classes, Element, Spec, Table, Tokens, element_of
from attar.data.transform import CACHED, CHUNK, Standard, Transform, fit, in_cache
from attar.data.vectors import read_vectors


@validated(frozen=True, config=ConfigDict(extra="forbid"))
class Origin:
    """How to load a data set again: what ``attar.load`` was given, if that was a name or a path."""

    source: str  #: a known name, or an absolute path
    test_source: str | None = None  #: a separate test set
    target: str | None = None  #: the label column of a table
    scaling: str = "standard"
    val: float = 0.1
    test: float = 0.2
    seed: int = 0
    vectors: str | None = None  #: the absolute path of a file of word vectors, or ``learnt``
    length: int | None = None  #: words per text
    imbalance: float = 1.0  #: of the training classes, made on purpose
    flip: float = 0.0  #: share of training labels changed on purpose
    columns: dict[str, str | tuple[str, ...]] | None = None  #: kinds that the user gave for columns of a table
    resize: str | None = None  #: height and width that images were brought to, such as 32x48


class Reading(NamedTuple):
    """How texts become tokens and embeddings, and rows of a table numbers.

    Args:
        length: Words per text; by default a length that 95 % of the training texts do not exceed.
        vectors: File of word vectors, or ``LEARNT``; by default embeddings are hashed.
        like: A spec whose vocabulary, length and embeddings, or columns, are used instead of all that.
        columns: Kinds of columns by name; others are inferred.
    """

    length: int | None = None
    vectors: Path | str | None = None
    like: Spec | None = None
    columns: tables.Schema | None = None


@dataclass(frozen=True, eq=False)
class Split:
    """The three sets of one source; the transform is fitted on ``train`` alone.

    Use ``val`` to make choices, and ``test`` once per reported figure.
    """

    train: Data  #: what methods reduce and networks learn from
    val: Data  #: for choices
    test: Data  #: for reported figures
    origin: Origin | None = None  #: None if the data was given as arrays

    @property
    def spec(self) -> Spec:
        """What an example and a label are, the same for all three sets."""
        return self.train.spec

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.train.classes

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one example."""
        return self.train.shape

    def to(self, device: torch.device | str) -> Split:
        """The same sets on another ``device``."""
        return replace(self, train=self.train.to(device), val=self.val.to(device), test=self.test.to(device))

    def __repr__(self) -> str:
        sizes = f"{len(self.train):,} train, {len(self.val):,} validation, {len(self.test):,} test"
        kind = type(self.spec.element).__name__.lower()
        return f"Split({self.spec.name!r}: {sizes}; {kind} {self.shape}, {self.classes} classes)"


def build(
    raw: RawSplit,
    name: str,
    where: str,
    *,
    val: float,
    test: float,
    seed: int,
    scaling: str,
    reading: Reading = Reading(),
    damage: Damage = Damage(),
) -> Split:
    """Check what a reader returned, hold out missing sets from train, fit the transform and apply it."""
    for share, word in ((val, "val"), (test, "test")):
        if not 0 < number(word, share) < 1:
            raise AttarError(f"{word} is the share to hold out from train and must lie between 0 and 1, got {share}.")
    known = None if reading.like is None else reading.like.element
    raw, wishes = tables.resolved(raw, reading.columns, known, where)
    check(raw, where, per_class=1 + (raw.test is None) + (raw.val is None))
    target, sets = Classes(raw.classes), _sets(raw, val, test, seed, damage)
    del raw  # the sets are copies
    if is_text(sets[0].x):
        coder, embedding = read_texts(sets[0].x.tolist(), reading)
        spec = Spec(coder.element, target, embedding, name)
        parts = [_data(part, coder(part.x.tolist()), spec) for part in sets]
        return Split(parts[0], parts[1], parts[2])
    for given, word in ((reading.length, "length"), (reading.vectors, "vectors")):
        if given is not None:
            raise AttarError(f"{where} holds no texts, so {word}={given} is not used: leave {word} out.")
    if sets[0].columns is not None:
        row = known if isinstance(known, Table) else tables.fitted(sets[0], wishes, where)
        named = zip(sets, (tables.TRAINING, "validation", "test"), strict=True)
        numbers = [tables.encode(part, row, where, word) for part, word in named]
        spec = Spec(row, target, _fit(scaling, numbers[0], row), name)
    else:
        examples = [part.x for part in sets]
        sets = [part._replace(x=np.empty(0)) for part in sets]
        numbers = [as_float(examples.pop(0)) for _ in sets]  # so that the bytes of each set are freed at once
        element = element_of(numbers[0].shape[1:])
        spec = Spec(element, target, _fit(scaling, numbers[0], element), name)
    parts = [_data(part, _scale(x, spec.transform), spec) for part, x in zip(sets, numbers, strict=True)]
    return Split(parts[0], parts[1], parts[2])


def _sets(raw: RawSplit, val: float, test: float, seed: int, damage: Damage) -> list[Raw]:
    """Train, validation and test sets; damage comes after the cuts, so that only train has it."""
    train, held, chosen = raw.train, raw.test, raw.val
    if held is None:  # never by seed: no run may train on the test examples of another
        train, held = cut(train, test, torch.Generator().manual_seed(0), keep=1 + (chosen is None))
    if chosen is None:
        train, chosen = cut(train, val, torch.Generator().manual_seed(seed), keep=1)
    return [damaged(train, len(raw.classes), damage, torch.Generator().manual_seed(seed)), chosen, held]


def _fit(scaling: str, x: Tensor, element: Element) -> Transform:
    """The scaling of training examples; levels of a table keep 0 and 1, so that rare ones do not become large."""
    found = fit(scaling, x)
    if not isinstance(element, Table) or not isinstance(found, Standard):
        return found
    scaled = element.scaled
    return Standard(found.mean.where(scaled, torch.tensor(0.0)), found.std.where(scaled, torch.tensor(1.0)))


def cut(raw: Raw, share: float, gen: Generator, *, keep: int) -> tuple[Raw, Raw]:
    """Hold out ``share`` of every class, at least one example, and leave at least ``keep``; the order is kept."""
    y = torch.from_numpy(raw.y)
    taken = torch.zeros(len(y), dtype=torch.bool)
    for c in range(int(y.max()) + 1):
        members = (y == c).nonzero().flatten()
        size = min(max(1, round(share * len(members))), len(members) - keep)
        taken[members[torch.randperm(len(members), generator=gen)[:size]]] = True
    mask = taken.numpy()
    return raw.at(~mask), raw.at(mask)


def as_float(x: NDArray[Any]) -> Tensor:
    """A float32 copy of examples, with uint8 pixels in [0, 1].

    Bytes are copied to the end of the memory of the floats, and turned into these from the start: byte i of n lies at
    3 n + i, and the floats before it end at 4 i, which is not more. So there is no time at which both are in memory.
    """
    out = np.empty(x.shape, dtype=np.float32)
    if x.dtype != np.uint8:
        out[...] = x
        return torch.from_numpy(out)
    floats = out.reshape(-1)
    packed = floats.view(np.uint8)[3 * x.size :]
    packed.reshape(x.shape)[...] = x
    del x
    for start in range(0, len(floats), CACHED):
        some = floats[start : start + CACHED]
        some[...] = packed[start : start + CACHED].copy()
        some /= 255
    return torch.from_numpy(out)


def read_texts(texts: list[str], reading: Reading) -> tuple[text.Tokeniser, Transform]:
    """The tokeniser and the embeddings of training texts."""
    if reading.like is not None and isinstance(reading.like.element, Tokens):
        return text.Tokeniser(reading.like.element), reading.like.transform
    coder = text.Tokeniser.fit(texts, reading.length)
    vocabulary = coder.element.vocabulary
    if reading.vectors is None:
        return coder, text.hashed(vocabulary)
    counts = coder(texts).flatten().bincount(minlength=len(vocabulary))
    if isinstance(reading.vectors, str):
        return coder, learn_vectors(texts, vocabulary, counts)
    return coder, read_vectors(reading.vectors, vocabulary, counts)


def _data(raw: Raw, x: Tensor, spec: Spec) -> Data:
    return Data(x, torch.from_numpy(raw.y), spec=spec, rows=torch.from_numpy(raw.rows), keys=raw.keys)


def _scale(x: Tensor, transform: Transform) -> Tensor:
    """Scale in place, chunk by chunk."""
    for chunk in in_cache(x) if isinstance(transform, Standard) else torch.split(x, CHUNK):
        chunk.copy_(transform.apply(chunk))
    return x
