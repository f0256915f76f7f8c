"""Duplicates: equal examples by a hash, and near ones by the distance of their features."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attar.core.errors import AttarError, require
from attar.core.files import atomic, write_text
from attar.core.text import csv_text
from attar.data import Data, InParts, Split
from attar.data.load import Source, loaded
from attar.data.parts.in_parts import joined
from attar.select.contract import Array
from attar.select.large.table import table_of
from attar.select.neighbours import EXACT, neighbours

ENDINGS = (".csv", ".parquet")
NEIGHBOURS = 16  #: nearest examples of each that are compared


class Duplicates(NamedTuple):
    """Clusters of duplicates; the first row of each is kept."""

    kept: Tensor  #: (k,) int64, positions of the examples to keep, in order
    clusters: Tensor  #: (n,) int64, the kept example that each belongs to
    exact: int  #: examples that equal an earlier one
    near: int  #: examples that are near to a kept one and equal none
    keys: list[int] | list[str]  #: the user's rows or keys

    @property
    def sizes(self) -> list[int]:
        """Sizes of the clusters with more than one example, largest first."""
        counts = self.clusters.bincount()
        return sorted((int(count) for count in counts[counts > 1]), reverse=True)

    def __repr__(self) -> str:
        return (
            f"Duplicates({len(self.kept):,} of {len(self.clusters):,} examples kept; {self.exact:,} equal an earlier "
            f"one, {self.near:,} are near one)"
        )

    def save(self, path: str | Path) -> None:
        """Write key, cluster (the key of its kept example) and whether it is kept, for every row; .csv or .parquet."""
        of = [self.keys[place] for place in self.clusters.tolist()]
        kept = (self.clusters == torch.arange(len(self.clusters))).tolist()
        if _ending(path) == ".csv":
            write_text(path, csv_text([["key", "cluster", "kept"], *zip(self.keys, of, kept, strict=True)]))
            return
        arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
        with atomic(path) as part:
            parquet.write_table(arrow.table({"key": self.keys, "cluster": of, "kept": kept}), part)


def dedup(
    data: Array | Source | Data | Split | InParts,
    *,
    distance: float | None = None,
    features: str | Sequence[str] | None = None,
    id: str | None = None,
    exact: int = EXACT,
) -> Duplicates:
    """Find duplicates; keep the first example of every cluster.

    Examples with equal bytes are one cluster. With ``distance``, examples whose features are not farther apart are in
    one cluster too, and so are those that a chain of such examples leads to. Only the nearest sixteen of each are
    compared, and above ``exact`` examples they are found by a graph search that misses some.

    Args:
        data: Embeddings, one row per example; anything that ``attar.load`` takes, of which the training set is used; or
            a table in parts (see ``attar.select``), whose features are vectors.
        distance: Largest Euclidean distance of near duplicates, in units of the features as given (of the loaded
            examples: as scaled); by default only equal examples are duplicates.
        features: The column of a table with the features.
        id: The column of a table with the keys.
        exact: Examples up to which all distances are computed.
    """
    if distance is not None and not 0 < distance < float("inf"):
        raise AttarError(f"distance is the largest distance of duplicates and must be above 0, got {distance}.")
    x, keys = _vectors(data, features, id)
    first = _equal(x)
    alone = (first == torch.arange(len(x))).nonzero().flatten()
    clusters = first
    if distance is not None and len(alone) > 1:
        roots = _linked(torch.from_numpy(x[alone.numpy()]), distance, exact)
        root = torch.arange(len(x))
        root[alone] = alone[roots]
        clusters = root[first]
    kept = clusters.unique()
    return Duplicates(kept, clusters, len(x) - len(alone), len(alone) - len(kept), keys)


def _vectors(data: Any, features: str | Sequence[str] | None, id: str | None) -> tuple[NDArray[np.float32], Any]:
    """Features ``(n, h)`` in float32, all finite, and the keys of their rows."""
    table = None if isinstance(data, torch.Tensor | np.ndarray | Data | Split) else table_of(data, features, None, id)
    if table is not None:
        return _of_table(table)
    given = data if isinstance(data, torch.Tensor | np.ndarray) else loaded(data)
    if isinstance(given, Data | Split):
        examples = given.train if isinstance(given, Split) else given
        found, names = examples.dense().x.flatten(1), examples.names
    else:
        found, names = torch.as_tensor(given), None
    if found.ndim != 2 or not found.numel():
        raise AttarError(f"The features have shape {tuple(found.shape)}: give one row of numbers per example.")
    x = np.ascontiguousarray(found.detach().cpu().numpy(), dtype=np.float32)
    if not np.isfinite(x).all():
        bad = int(np.flatnonzero(~np.isfinite(x).all(1))[0])
        raise AttarError(f"The features of example {bad} hold NaN or Inf: clean them or leave that example out.")
    return x, list(range(len(x))) if names is None else names


def _of_table(table: InParts) -> tuple[NDArray[np.float32], Any]:
    _ = table.schema
    if table.kind != "vectors":
        raise AttarError(f"Duplicates are found among vectors, and {table.where} has {table.kind}: give embeddings.")
    batches = list(table.read(table.table.segments(), 0))
    if not batches:
        raise AttarError(f"{table.where} has no rows: give files with at least one.")
    x = joined([batch.x for batch in batches if batch.x is not None])
    numbers = [int(number) for batch in batches for number in batch.numbers]
    keys = numbers if table.id is None else [key for batch in batches for key in batch.keys.to_pylist()]
    return np.asarray(x, dtype=np.float32), keys


def _equal(x: NDArray[np.float32]) -> Tensor:
    """The first row with the same bytes, of every row; zeros of both signs are equal."""
    seen: dict[bytes, int] = {}
    plain = x + np.float32(0)
    rows = (hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in plain)
    return torch.tensor([seen.setdefault(digest, place) for place, digest in enumerate(rows)])


def _linked(x: Tensor, distance: float, exact: int) -> Tensor:
    """The first row of the cluster of every row, where rows that are near are linked."""
    found = neighbours(x, NEIGHBOURS + 1, exact)
    root = list(range(len(x)))

    def top(place: int) -> int:
        while root[place] != place:
            root[place] = root[root[place]]
            place = root[place]
        return place

    near = (found.distances <= distance).nonzero()
    for row, column in near.tolist():
        one, other = top(row), top(int(found.places[row, column]))
        root[max(one, other)] = min(one, other)
    return torch.tensor([top(place) for place in range(len(x))])


def _ending(path: str | Path) -> str:
    ending = Path(path).suffix
    if ending not in ENDINGS:
        raise AttarError(f"Duplicates cannot be written to {path}: use a name that ends in {' or '.join(ENDINGS)}.")
    return ending


def require_ending(path: str | Path) -> None:
    """Raise if duplicates cannot be written to a file of this name."""
    _ending(path)
