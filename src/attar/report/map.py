"""The map of a study: training examples by their first two principal components, and coresets among them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from attar.coreset import Coreset
from attar.data import Data, Split, Tokens
from attar.data.transform import same
from attar.report.embed import PIXELS, cut, packed, sheet
from attar.report.gallery import Gallery
from attar.report.images import is_image
from attar.report.principal import Principal, nearest, principal
from attar.report.readable import in_words
from attar.report.rows import Row

POINTS = 5000  #: training examples drawn at most
MARKS = 1000  #: examples drawn at most of one coreset
ALL_MARKS = 10_000  #: of all coresets together
COMPONENTS = 50  #: in which neighbours are sought
NEIGHBOURS = 5
CHUNK = 512
NUMBERS = 2**26  #: of all training examples drawn, 256 MiB of them; of larger examples there are fewer
FEWEST = 200  #: but not fewer than these


@dataclass(frozen=True)
class Map:
    """What the script draws, and what the page says about it."""

    drawn: dict[str, Any]  #: for the script
    shown: int  #: training examples
    of: int
    share: float  #: of the variance, in percent
    notes: list[str]


def map_of(split: Split, galleries: list[Gallery], best: Row | None) -> Map | None:
    """The map of the training examples and of every coreset whose file is there; None for fewer than three examples."""
    if len(split.train) < 3:
        return None
    gen = torch.Generator().manual_seed(0)
    most = max(FEWEST, min(POINTS, NUMBERS // prod(split.shape)))
    chosen = torch.randperm(len(split.train), generator=gen)[:most].sort().values
    data = split.train.take(chosen.to(split.train.device)).to("cpu")
    numbers = _numbers(data)
    found = principal(numbers, COMPONENTS, gen)
    places = found(numbers)
    sets, notes = _sets(galleries, data, found, best)
    low, span = _frame(places)
    points = _examples(data, places, nearest(places, places, NEIGHBOURS, own=True), low, span)
    if points["rows"] is None:
        points["rows"] = chosen.tolist()
    total = sum(len(each["data"]) for each in sets)
    for each in sets:
        at, shown = each.pop("at"), each.pop("data")
        each |= _examples(shown, at, nearest(at, places, NEIGHBOURS), low, span, PIXELS * len(shown) / total)
    drawn = {
        "classes": cut(list(data.spec.target.names), 40),
        "points": points,
        "sets": sets,
        "components": places.shape[1],
    }
    return Map(drawn, len(data), len(split.train), 100 * float(found.shares[:2].sum()), notes)


def _sets(
    galleries: list[Gallery], real: Data, found: Principal, best: Row | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The coresets with their coordinates, and a note on each that is not drawn whole."""
    sets: list[dict[str, Any]] = []
    notes, left = [], ALL_MARKS
    for gallery in galleries:
        row, coreset = gallery.row, gallery.coreset
        if coreset is None or left == 0 or not _fits(coreset, real):
            notes += [f"{row.label} ({row.amount}) is not on the map."]
            continue
        data = coreset.data[: min(MARKS, left)]
        if len(data) < len(coreset):
            notes += [f"{len(data):,} of the {len(coreset):,} examples of {row.label} are on the map."]
        left -= len(data)
        here = best is not None and row.size == best.size and (row is best or "random subset" in row.marks)
        about = {"name": row.label, "amount": row.amount, "colour": row.colour, "seed": gallery.seed, "on": here}
        sets.append(
            about
            | {"learnt": _learnt(coreset), "data": data, "at": found(_numbers(data.transformed(real.spec.transform)))}
        )
    return sets, notes


def _rows(data: Data) -> list[int] | list[str] | None:
    """The user's names or numbers of examples."""
    names = data.names
    return names if names is None or data.keys is None else cut([str(name) for name in names], 200)


def _learnt(coreset: Coreset) -> bool:
    return coreset.rows is None and coreset.indices is None


def _fits(coreset: Coreset, real: Data) -> bool:
    """Whether its examples can be compared with these."""
    ours, theirs = coreset.data.spec, real.spec
    alike = not isinstance(theirs.element, Tokens) or same(ours.transform, theirs.transform)
    return alike and ours.element.shape == theirs.element.shape and len(ours.target) == len(theirs.target)


def _numbers(data: Data) -> Tensor:
    """Examples as rows of numbers ``(n, d)``: inputs of networks, and for texts the mean of their embeddings."""
    if isinstance(data.spec.element, Tokens):
        return torch.cat([part.dense().x.float().mean(1) for part in data.chunks(CHUNK)])
    return data.x.flatten(1).float().cpu()


def _frame(places: Tensor) -> tuple[Tensor, float]:
    """The lower corner and the side of a square around the training examples, five times as wide as they lie.

    What was learnt far outside is drawn at its edge, so that it does not shrink everything else to a point.
    """
    low, high = _two(places).min(0).values, _two(places).max(0).values
    span = 5 * (float((high - low).max()) or 1.0)
    return (low + high - span) / 2, span


def _two(places: Tensor) -> Tensor:
    return torch.nn.functional.pad(places, (0, max(0, 2 - places.shape[1])))[:, :2]


def _examples(
    data: Data, places: Tensor, near: Tensor, low: Tensor, span: float, most: float = PIXELS
) -> dict[str, Any]:
    """Coordinates, labels, neighbours, names and looks of examples."""
    at = ((_two(places) - low) / span * 65535).round().clamp(0, 65535)
    return {
        "count": len(data),
        "at": packed(at),
        "labels": packed(data.hard),
        "near": packed(near),
        "each": near.shape[1],
        "rows": _rows(data),
        "sheet": sheet(data.spec.stored(data.x), most) if is_image(data.spec.element) else None,
        "words": in_words(data),
    }
