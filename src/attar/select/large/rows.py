"""Picked rows of a table, in memory and in the file of finished parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attar.core.errors import DamagedFile, MissingFile
from attar.core.files import read_tensors, set_aside, write_tensors

FORMAT = "attar-rows-2"


class Rows(NamedTuple):
    """Rows that were picked, with all that a later selection among them needs."""

    numbers: Tensor  #: (n,) int64, of the rows
    scores: Tensor  #: (n,) float64
    order: Tensor  #: (n,) float64, the place among the picks of the part, from 0 to 1
    y: Tensor  #: (n,) int64, classes
    counts: Tensor | None = None  #: (n,) float32, how many rows each stands for, if the method says so
    x: Tensor | None = None  #: (n, ...) inputs of the network, where they are selected from again
    keys: list[int] | list[str] | None = None  #: the user's names

    def take(self, places: Tensor) -> Rows:
        """Some of the rows."""
        tensors = [None if part is None else part[places] for part in self[:6]]
        return Rows._make([*tensors, None if self.keys is None else [self.keys[i] for i in places.tolist()]])

    @staticmethod
    def join(parts: Sequence[Rows]) -> Rows:
        """All rows, one after the other."""
        some = [part for part in parts if len(part.numbers)] or parts[:1]
        columns: list[Any] = [
            None if column[0] is None else torch.cat(column) for column in zip(*(p[:6] for p in some), strict=True)
        ]
        return Rows._make([*columns, None if some[0].keys is None else [key for p in some for key in p.keys or ()]])


class Mark(NamedTuple):
    """The file of picks that are finished."""

    path: Path
    stamp: str  #: what they were made from
    start: int = 0  #: row from which the file counts, so that it holds if there are more or fewer rows before

    def save(self, rows: Rows) -> None:
        """Write the file; it is whole or not there."""
        counted = rows._replace(numbers=rows.numbers - self.start)
        tensors = {name: part for name, part in counted._asdict().items() if isinstance(part, Tensor)}
        header = {"format": FORMAT, "stamp": self.stamp}
        if rows.keys and isinstance(rows.keys[0], str):
            header["keys"] = json.dumps(rows.keys)
        elif rows.keys is not None:
            tensors["keys"] = torch.tensor(rows.keys, dtype=torch.int64)
        write_tensors(self.path, tensors, header)

    def load(self) -> Rows | None:
        """What the file holds; None if there is none, if it is damaged, or if its stamp is another."""
        try:
            tensors, header = read_tensors(self.path)
        except MissingFile:
            return None
        except DamagedFile as error:
            set_aside(error, "its parts are selected from again")
            return None
        if header.get("format") != FORMAT or header.get("stamp") != self.stamp:
            return None
        keys = json.loads(header["keys"]) if "keys" in header else None
        named = tensors.pop("keys", None)
        rows = Rows(**tensors, keys=keys if named is None else named.tolist())
        return rows._replace(numbers=rows.numbers + self.start)
