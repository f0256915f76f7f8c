"""Tables with columns of several kinds: which kind each has, what training teaches of it, and rows as numbers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BeforeValidator
from torch import Tensor

from attar.core import budget
from attar.core.errors import AttarError, unknown
from attar.data.columns import (
    KINDS,
    LARGEST,
    MOST_LEVELS,
    OTHER,
    Column,
    Header,
    Kind,
    Values,
    convert,
    frequent,
    infer,
    is_missing,
)
from attar.data.raw import Raw, RawSplit
from attar.data.spec import Element, Table, Vector
from attar.data.words import words as words_of

Schema = Mapping[str, str | Sequence[str]]  #: a kind by column, or its values in order, for an ordinal
SKIP = "skip"  #: in a schema: the column is left out
TEXTS = ("text", "sentence")  #: names of a column that alone is the example
INDEX = ("", "index", "id", "row", "__index_level_0__")  #: names of a column that numbers the rows
TRAINING = "training"  #: the name of the set that columns are fitted on
SHOWN = 5  #: columns that a warning names


class Wish(NamedTuple):
    """What a column is to be read as."""

    kind: Kind
    order: tuple[str, ...] = ()  #: of an ordinal


def parse(text: str) -> dict[str, str | tuple[str, ...]]:
    """The schema in ``age:numeric,job:category,size:small<medium<large``; what follows the last colon is the kind."""
    found: dict[str, str | tuple[str, ...]] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, colon, kind = part.rpartition(":")
        if not colon or not name or not kind:
            raise AttarError(
                f"--columns is NAME:KIND, separated by commas, such as age:numeric,job:category; got {part!r}."
            )
        found[name.strip()] = tuple(map(str.strip, kind.split("<"))) if "<" in kind else kind.strip()
    return found


def schema_of(given: Any) -> Any:
    """A schema from a mapping, or from its form as a text; None stays None."""
    if isinstance(given, str):
        return parse(given)
    if not isinstance(given, Mapping):
        return given
    return {str(name): kind if isinstance(kind, str) else tuple(map(str, kind)) for name, kind in given.items()}


#: The same as a field of specs and recipes.
Columns = Annotated[dict[str, str | tuple[str, ...]] | None, BeforeValidator(schema_of)]


def resolved(
    raw: RawSplit, schema: Schema | None, like: Element | None, where: str
) -> tuple[RawSplit, dict[str, Wish]]:
    """What each column of a table is read as; a table whose examples are texts becomes these texts.

    Args:
        raw: What a reader returned; anything but a table is returned as it is.
        schema: Kinds that the user gave by column; others are inferred.
        like: An element whose columns are used again, if there is one.
        where: The source, for errors.
    """
    headers = raw.train.columns
    if headers is None:
        if schema:
            raise AttarError(f"{where} has no columns, so columns={dict(schema)} is not used: leave columns out.")
        return raw, {}
    if isinstance(like, Table):
        return raw, {column.name: Wish(column.kind, column.levels) for column in like.fields}
    if isinstance(like, Vector) and set(like.columns) <= {header.name for header in headers}:
        return raw, dict.fromkeys(like.columns, Wish("numeric"))
    wishes = _wishes(raw.train, headers, schema or {}, where)
    text = _text_among(wishes, schema or {})
    if text is None:
        for header in headers:
            if header.name not in {*wishes, *(schema or {})}:
                warnings.warn(
                    f"Column {header.name!r} of {where} numbers the rows and is left out: to keep it, give its kind, "
                    "numeric, among the columns.",
                    stacklevel=2,
                )
        return raw, wishes
    others = [header.name for header in headers if header.name != text]
    if others:
        warnings.warn(
            f"The examples of {where} are the texts in column {text!r}: {', '.join(others)} "
            f"{'is' if len(others) == 1 else 'are'} not used; {text}:text among the columns reads a table of all.",
            stacklevel=2,
        )
    parts = {part: _texts(held, text, where) for part, held in raw.parts().items()}
    return raw._replace(train=parts["train"], test=parts.get("test"), val=parts.get("val")), {}


def _wishes(raw: Raw, headers: Sequence[Header], schema: Schema, where: str) -> dict[str, Wish]:
    """The kinds that the user gave, and what the other columns look like; a column that numbers the rows has none."""
    names = [header.name for header in headers]
    found: dict[str, Wish] = {}
    for name, kind in schema.items():
        if name not in names:
            raise unknown(f"column of {where}", name, names)
        if isinstance(kind, str) and kind not in (*KINDS, SKIP):
            raise unknown(f"kind of column {name!r}", kind, (*KINDS, SKIP))
    for place, header in enumerate(headers):
        given, values = schema.get(header.name), raw.x[:, place]
        if given is None:
            if len(headers) == 1 or not _numbers_rows(values, header, place):
                found[header.name] = Wish(infer(values, header))
        elif not isinstance(given, str):
            found[header.name] = Wish("ordinal", tuple(given))
        elif given != SKIP:
            found[header.name] = Wish(given)  # type: ignore[arg-type]
    if not found:
        raise AttarError(f"{where} has no feature column: add or keep at least one column beside the label.")
    return found


def _numbers_rows(values: Values, header: Header, place: int) -> bool:
    """Whether a column is an index that pandas saved: its name says so, or it is first and counts from 0 or 1."""
    if header.words is not None or header.kind is not None or not len(values) or (values != np.rint(values)).any():
        return False
    named = header.name.lower() in INDEX or header.name.startswith("Unnamed:")
    counts = len(values) > 2 and values[0] in (0, 1) and bool((np.diff(values) == 1).all())
    return counts if place == 0 and not named else named and len(np.unique(values)) == len(values)


def _text_among(wishes: Mapping[str, Wish], schema: Schema) -> str | None:
    """The column that alone is the example: one called so, or the only one."""
    named = [name for name, wish in wishes.items() if name.lower() in TEXTS and wish.kind in ("text", "category")]
    alone = [name for name, wish in wishes.items() if wish.kind == "text" and len(wishes) == 1]
    return next((name for name in (*named, *alone) if name not in schema), None)


def _texts(raw: Raw, name: str, where: str) -> Raw:
    values, header = _cells(raw, name, where)
    words = np.array([*(header.words or ()), ""], dtype=object)
    places = np.where(np.isnan(values), len(words) - 1, values).astype(np.int64)
    return raw._replace(x=words[places], columns=None)


def _cells(raw: Raw, name: str, where: str) -> tuple[Values, Header]:
    for place, header in enumerate(raw.columns or ()):
        if header.name == name:
            return raw.x[:, place], header
    raise AttarError(f"{where} has no column {name!r}, which the training data has: add it, or train without it.")


def fitted(raw: Raw, wishes: Mapping[str, Wish], where: str) -> Table:
    """The columns as the training set teaches them; one without any value is left out."""
    fields = []
    for name, wish in wishes.items():
        values, header = _cells(raw, name, where)
        column = _fit(*convert(values, header, wish.kind, where), header, wish, where)
        if column is None:
            warnings.warn(f"Column {name!r} of {where} has no value in training and is left out.", stacklevel=2)
        else:
            fields.append(column)
    if not fields:
        raise AttarError(f"{where} has no column with a value: fill in at least one column beside the label.")
    return Table.of_fields(fields)


def _fit(values: Values, words: Sequence[str], header: Header, wish: Wish, where: str) -> Column | None:
    gone = np.isnan(values)
    known = values[~gone]
    if not len(known):
        return None
    name, gaps = header.name, bool(gone.any())
    if wish.kind in ("numeric", "date"):
        if np.abs(known).max() > LARGEST:
            raise AttarError(
                f"Column {name!r} of {where} holds numbers beyond {LARGEST:g}: rescale it or leave it out."
            )
        low, high = float(known.min()), float(known.max())
        whole = bool((known == np.rint(known)).all())
        return Column(name, wish.kind, (), float(known.mean()), low, high, whole, gaps)
    used = Counter(words[int(place)] for place in known)
    if wish.kind == "category":
        return Column(name, "category", _levels(used, name, where), gaps=gaps)
    if wish.kind == "text":
        counts: Counter[str] = Counter()
        for text, count in used.items():
            counts.update(dict.fromkeys(words_of(text), count))
        return Column(name, "text", tuple(frequent(counts, MOST_LEVELS)), gaps=gaps) if counts else None
    levels = _pair(words, header, where) if wish.kind == "boolean" else _order(used, words, header, wish, where)
    places = [levels.index(word) for word in used.elements()]
    return Column(name, wish.kind, levels, float(np.mean(places)), gaps=gaps)


def _levels(used: Counter[str], name: str, where: str) -> tuple[str, ...]:
    """The categories by alphabet, and a last one for those of other rows."""
    kept = frequent(Counter({word: n for word, n in used.items() if word != OTHER}), MOST_LEVELS)
    if rare := used.total() - used[OTHER] - sum(used[word] for word in kept):
        warnings.warn(
            f"Column {name!r} of {where} has {len(used):,} categories: the {MOST_LEVELS} most frequent are kept and "
            f"{rare:,} training rows become {OTHER!r}; read it as text ({name}:text) or leave it out ({name}:{SKIP}).",
            stacklevel=2,
        )
    return (*(budget.short(word, f"A value of column {name!r}") for word in sorted(kept)), OTHER)


def _pair(words: Sequence[str], header: Header, where: str) -> tuple[str, ...]:
    """The word for no and the word for yes."""
    known = sorted({word for word in words if not is_missing(word, header.typed)}, key=str.lower)
    if len({word.lower() for word in known}) != 2 or len(known) != 2:
        raise AttarError(
            f"Column {header.name!r} of {where} is read as boolean and has {len(known)} values, not two: "
            f"read it as a category ({header.name}:category)."
        )
    return known[0], known[1]  # in alphabetical order no comes before yes, false before true


def _order(used: Counter[str], words: Sequence[str], header: Header, wish: Wish, where: str) -> tuple[str, ...]:
    """The levels of an ordinal: as given, as its type says, or by number."""
    levels = wish.order or (tuple(words) if header.kind == "ordinal" else ())
    name = header.name
    if not levels:
        try:
            levels = tuple(sorted(used, key=float))
        except ValueError as error:
            raise AttarError(
                f"The order of column {name!r} of {where} is not known: give its values in order ({name}:low<high)."
            ) from error
    for word in used:
        if word not in levels:
            raise AttarError(
                f"Column {name!r} of {where} holds {word[:40]!r}, which is not in its order "
                f"{' < '.join(levels)}: add it."
            )
    if len(levels) > MOST_LEVELS:
        raise AttarError(
            f"Column {name!r} of {where} has {len(levels):,} ordered values where {MOST_LEVELS} are allowed: read it "
            "as numeric or text."
        )
    return tuple(budget.short(word, f"A value of column {name!r}") for word in levels)


def encode(raw: Raw, element: Table, where: str, part: str) -> Tensor:
    """Rows as the numbers of their columns, ``(n, width)``; says how many values of a held-out set are new.

    Args:
        raw: The rows.
        element: The columns.
        where: Their source, for errors.
        part: What these rows are, such as the test set.
    """
    budget.claim(4 * len(raw.x) * len(element.columns), where)
    blocks: list[NDArray[np.float32]] = []
    unseen: dict[str, int] = {}
    for column in element.fields:
        values, header = _cells(raw, column.name, f"The {part} set of {where}")
        block, unseen[column.name] = column.encode(*convert(values, header, column.kind, where))
        if not np.isfinite(block).all():
            raise AttarError(f"Column {column.name!r} of {where} holds numbers that are too large: rescale it.")
        blocks.append(block)
    new = {name: count for name, count in unseen.items() if count}
    if new and part != TRAINING:  # of that set ``fitted`` has told
        named = ", ".join(f"{name}: {count:,}" for name, count in list(new.items())[:SHOWN])
        warnings.warn(
            f"{sum(new.values()):,} values of the {part} set of {where} are not among those of training "
            f"({named}{', ...' if len(new) > SHOWN else ''}): they count as {OTHER!r}, or as the training mean.",
            stacklevel=2,
        )
    return torch.from_numpy(np.concatenate(blocks, axis=1))
