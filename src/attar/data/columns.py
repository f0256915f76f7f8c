"""Columns of tables: their kinds, and the way from values to the numbers that networks see and back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from attar.core.budget import MOST_CHARACTERS
from attar.core.errors import AttarError
from attar.data.words import words as words_of

Kind = Literal["numeric", "boolean", "ordinal", "category", "date", "text"]
KINDS = get_args(Kind)
OTHER = "other"  #: the level of categories that training does not have
MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?"}
)  #: cells of a text file without value
PAIRS = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"))  #: words of a boolean column
MOST_LEVELS = 100  #: categories of a column, and words of a column of texts; rarer ones are joined
LARGEST = 1e30  #: of a number: its square must fit into float32 sums
EPOCH = datetime(1970, 1, 1)
SPAN = ((datetime.min - EPOCH).days + 1.0, (datetime.max - EPOCH).days - 1.0)  #: days that a calendar has
DATE = re.compile(r"\d{4}[-/]\d{1,2}[-/]\d{1,2}([ T].*)?")

Values = NDArray[np.float64]


class Header(NamedTuple):
    """A column as a reader found it; its values are float64, NaN where they are missing."""

    name: str
    words: tuple[str, ...] | None = None  #: values are places in these words; None if they are numbers
    kind: Kind | None = None  #: boolean, date (days since 1970) or ordinal (words in order), where the type says so
    typed: bool = True  #: whether the source marks missing values itself, so that words such as NA are words


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Column:
    """How the values of one column become numbers; all of it is learnt from the training set.

    A number, boolean, ordinal or date is one number, a category one for each level (a last level is for all others),
    and a text one for each of its most frequent words. Where training values are missing, one more number says so.
    """

    name: Annotated[str, Field(max_length=MOST_CHARACTERS)]
    kind: Kind
    levels: tuple[str, ...] = Field(default=(), max_length=MOST_LEVELS + 1)  #: categories, in order, or words
    fill: float = Field(default=0.0, allow_inf_nan=False)  #: stands for a missing value
    low: float = Field(default=0.0, ge=-LARGEST, le=LARGEST)  #: least training value of a number or date
    high: float = Field(default=0.0, ge=-LARGEST, le=LARGEST)
    whole: bool = False  #: training values are whole numbers, or days without a time
    gaps: bool = False  #: training values are missing

    def __post_init__(self) -> None:
        if any(len(level) > MOST_CHARACTERS for level in self.levels):
            raise ValueError(f"a value of column {self.name!r} has more than {MOST_CHARACTERS} characters")
        if (self.kind in ("numeric", "date")) == bool(self.levels):
            raise ValueError(f"column {self.name!r} has {len(self.levels)} levels")
        if self.kind == "boolean" and len(self.levels) != 2:
            raise ValueError(f"column {self.name!r} is boolean and has {len(self.levels)} levels")
        if self.kind == "date" and not SPAN[0] <= self.low <= self.high <= SPAN[1]:
            raise ValueError(f"column {self.name!r} has dates outside the calendar")

    @property
    def spread(self) -> bool:
        """Whether it has one number for each level."""
        return self.kind in ("category", "text")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its numbers."""
        own = tuple(f"{self.name}={level}" for level in self.levels) if self.spread else (self.name,)
        return (*own, f"{self.name}=missing") if self.gaps else own

    @property
    def scaled(self) -> list[bool]:
        """Which of its numbers are measured and need a scale; the others are 0 or 1."""
        return [self.kind in ("numeric", "date", "ordinal") and k == 0 for k in range(len(self.names))]

    def encode(self, values: Values, words: Sequence[str]) -> tuple[NDArray[np.float32], int]:
        """Its numbers ``(n, len(names))``, and for how many values training has none.

        Args:
            values: As ``convert`` gives them.
            words: What they are places in, for kinds with words.
        """
        gone = np.isnan(values)
        x = np.zeros((len(values), len(self.names)), np.float32)
        if self.kind == "text":
            found = np.array([_present(word, self.levels) for word in words] or [[0.0] * len(self.levels)], np.float32)
            x[~gone, : len(self.levels)] = found[values[~gone].astype(np.int64)]
            unseen = gone & (not self.gaps)
        elif self.kind == "category":
            place = self._places(values, words, gone)
            unseen = (place < 0) & ~(gone & self.gaps)
            place[unseen] = len(self.levels) - 1  # the others
            place[gone & self.gaps] = len(self.levels)
            x[np.arange(len(x)), place] = 1
        else:
            numbers = self._places(values, words, gone).astype(np.float64) if self.levels else values
            lost = gone | (numbers < 0 if self.levels else False)
            unseen = lost & ~(gone & self.gaps)
            x[:, 0] = np.where(lost, self.fill, numbers)
        if self.gaps:
            x[:, -1] = gone
        return x, int(unseen.sum())

    def _places(self, values: Values, words: Sequence[str], gone: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The level of every value; -1 where there is none."""
        where = {level: k for k, level in enumerate(self.levels)}
        lookup = np.array([where.get(word, -1) for word in words] or [-1], np.int64)
        return np.where(gone, -1, lookup[np.where(gone, 0, values).astype(np.int64)])

    def decode(self, x: NDArray[np.floating[Any]]) -> list[Any]:
        """Valid values from its numbers, stored or learnt: the nearest level, a number or date in the training range.

        None is a missing value.
        """
        if self.kind == "category":
            return [None if k == len(self.levels) else self.levels[k] for k in x.argmax(1).tolist()]
        gone = (x[:, -1] > 0.5) if self.gaps else np.zeros(len(x), bool)
        return [None if lost else self._value(row) for row, lost in zip(x, gone.tolist(), strict=True)]

    def _value(self, row: NDArray[np.floating[Any]]) -> Any:
        if self.kind == "text":
            return " ".join(word for word, value in zip(self.levels, row, strict=False) if value > 0.5)
        if self.levels:
            level = self.levels[int(np.clip(np.rint(row[0]), 0, len(self.levels) - 1))]
            return level.lower() == "true" if self.kind == "boolean" and level.lower() in PAIRS[0] else level
        number = float(np.clip(row[0], self.low, self.high))
        if self.kind == "date":
            moment = EPOCH + timedelta(seconds=round(number * 86_400))
            return (EPOCH + timedelta(days=round(number))).date() if self.whole else moment
        return round(number) if self.whole else float(f"{number:.6g}")

    def __str__(self) -> str:
        sizes = {"category": f" ({len(self.levels) - 1})", "ordinal": f" ({' < '.join(self.levels)})"}
        return f"{self.name}{sizes.get(self.kind, '')}"


def _present(text: str, words: Sequence[str]) -> list[float]:
    found = set(words_of(text))
    return [float(word in found) for word in words]


def infer(values: Values, header: Header) -> Kind:
    """The kind of a column: what its type says, else what all of its words look like."""
    if header.kind is not None:
        return header.kind
    if header.words is None:
        return "numeric"
    used = np.unique(values[~np.isnan(values)]).astype(np.int64).tolist()
    known = [word for word in (header.words[k] for k in used) if not is_missing(word, header.typed)]
    if len(known) == 2 and {word.lower() for word in known} in map(set, PAIRS):
        return "boolean"
    if known and all(_days(word) is not None for word in known):
        return "date"
    many = len(known) > len(values) / 2 and sum(len(word.split()) for word in known) >= 4 * len(known)
    return "text" if many else "category"


def convert(values: Values, header: Header, kind: Kind, where: str) -> tuple[Values, tuple[str, ...]]:
    """The values as this kind needs them: numbers or days, or places in words; NaN where they are missing.

    Args:
        values: As the reader found them.
        header: What they are.
        kind: What they are to be.
        where: Their source, for errors.
    """
    if kind in ("numeric", "date"):
        if header.words is None:
            if kind == "date" and header.kind != "date":
                raise AttarError(f"Column {header.name!r} of {where} holds numbers, not dates such as 2024-12-31.")
            return values, ()
        read = _number if kind == "numeric" else _days
        parsed = np.array([_parsed(word, header, read, kind, where) for word in header.words] or [np.nan])
        return np.where(np.isnan(values), np.nan, parsed[np.nan_to_num(values).astype(np.int64)]), ()
    words = header.words
    if words is None:
        distinct, places = np.unique(values, return_inverse=True)
        words = tuple(_written(number, header) for number in distinct.tolist())
        values = np.where(np.isnan(values), np.nan, places.reshape(-1).astype(np.float64))
    gone = np.array([is_missing(word, header.typed or kind == "text") for word in words] or [False])
    return np.where(gone[np.nan_to_num(values).astype(np.int64)], np.nan, values), words


def is_missing(word: str, typed: bool) -> bool:
    """Whether a cell has no value: in a text file also by words such as NA."""
    plain = word.strip().lower()
    return not plain if typed else plain in MISSING


def _parsed(word: str, header: Header, read: Any, kind: Kind, where: str) -> float:
    if is_missing(word, header.typed):
        return np.nan
    found = read(word)
    if found is None:
        what = "a number" if kind == "numeric" else "a date such as 2024-12-31"
        raise AttarError(
            f"Column {header.name!r} of {where} holds {word[:40]!r}, which is not {what}: correct it, or read the "
            f"column as a category ({header.name}:category)."
        )
    return float(found)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _days(word: str) -> float | None:
    """Days since 1970 of a date, with or without a time."""
    if not DATE.fullmatch(word.strip()):
        return None
    day, mark, time = word.strip().replace("/", "-").partition("T" if "T" in word else " ")
    try:
        year, month, number = map(int, day.split("-"))
        moment = datetime.fromisoformat(f"{date(year, month, number).isoformat()}{mark}{time}")
    except ValueError:
        return None
    plain = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    days = (plain - EPOCH) / timedelta(days=1)
    return days if SPAN[0] <= days <= SPAN[1] else None


def _written(number: float, header: Header) -> str:
    """A number or date as a word."""
    if np.isnan(number):
        return ""
    if header.kind == "date":
        moment = EPOCH + timedelta(days=number)
        return moment.date().isoformat() if number == int(number) else moment.isoformat(timespec="seconds")
    return str(int(number)) if number == int(number) else repr(number)


def frequent(counts: Counter[str], most: int) -> list[str]:
    """The most frequent words; of equally frequent ones the first by alphabet."""
    return sorted(counts, key=lambda word: (-counts[word], word))[:most]
