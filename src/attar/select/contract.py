"""The base class and the result of selection methods."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.utils.data import Dataset, Subset, WeightedRandomSampler

from attar.core.errors import AttarError, require
from attar.core.files import atomic, write_tensors, write_text
from attar.core.method import Method, Needs
from attar.core.text import csv_text
from attar.data.data import count_in_words
from attar.select import keep
from attar.select.view import View

FORMAT = "attar-selection-1"
ENDINGS = (".csv", ".parquet", ".npz", ".safetensors")  #: of files

Array = Tensor | NDArray[Any]
Item = TypeVar("Item", covariant=True)


class Selection(NamedTuple):
    """Picks in order, so that a smaller budget is a prefix of the indices; weights are for this budget only.

    Methods that choose all picks together (``nested`` is false) have no such order.

    ``scores`` depend on the method: the gain of a pick, its own score, or the error that remains after it.
    """

    indices: Tensor  #: (size,) int64, unique
    scores: Tensor  #: (size,) float
    weights: Tensor | None = None  #: (size,) float, if picks represent different numbers of examples
    rows: list[int] | list[str] | None = None  #: the user's own row numbers or keys of the picks
    classes: list[str] | None = None  #: the class of every pick, where the labels of all the data are not in memory

    def __repr__(self) -> str:
        counted = count_in_words(self.weights)
        return f"Selection({len(self.indices)} picks{counted and f', {counted}'})"

    def subset(self, dataset: Dataset[Item]) -> Subset[Item]:
        """The picked items of a PyTorch data set."""
        return Subset(dataset, self.indices.tolist())

    def sampler(self, gen: Generator, draws: int | None = None) -> WeightedRandomSampler:
        """Draws positions in ``subset`` in proportion to the weights; by default one per pick in each epoch."""
        weights = [1.0] * len(self.indices) if self.weights is None else self.weights.tolist()
        if sum(weights) <= 0:
            raise AttarError("All weights are zero, so nothing can be drawn: select more examples.")
        return WeightedRandomSampler(weights, draws or len(weights), generator=gen)

    def save(self, path: str | Path, labels: Array | None = None, recipe: Mapping[str, Any] | None = None) -> None:
        """Write indices, rows, scores, classes and weights for other programs.

        Args:
            path: The file; its suffix gives the format: .csv, .parquet, .npz or .safetensors. All but .csv also hold
                the recipe, as JSON.
            labels: Labels of all the data, if there are any.
            recipe: How the selection was made. A .safetensors file holds it, and rows that are keys, in its header.
        """
        about = json.dumps(recipe or {})
        columns, rows = self._columns(labels), self.rows
        match require_ending(path):
            case ".csv":
                self.csv(path, labels)
            case ".parquet":
                arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
                table = arrow.table(self._keyed(labels)).replace_schema_metadata({"recipe": about})
                with atomic(path) as part:
                    parquet.write_table(table, part)
            case ".npz":
                arrays = {name: tensor.numpy() for name, tensor in columns.items()}
                arrays |= {} if rows is None else {"rows": np.array(rows)}
                with atomic(path) as part, part.open("wb") as file:
                    np.savez_compressed(file, allow_pickle=False, recipe=np.array(about), **arrays)
            case _:
                header = {"format": FORMAT, "recipe": about}
                if rows and isinstance(rows[0], str):
                    header["rows"] = json.dumps(rows)
                elif rows:
                    columns["rows"] = torch.tensor(rows)
                write_tensors(path, columns, header)

    def csv(self, path: str | Path, labels: Array | None = None) -> None:
        """Write index, row, score, class and weight, one line per pick; ``labels`` are those of all the data."""
        table = self._table(labels)
        write_text(path, csv_text([list(table), *zip(*table.values(), strict=True)]))

    def _table(self, labels: Array | None) -> dict[str, Sequence[Any]]:
        """The columns of a table, best pick first."""
        columns: dict[str, Sequence[Any]] = {name: tensor.tolist() for name, tensor in self._columns(labels).items()}
        table: dict[str, Sequence[Any]] = {"index": columns["indices"]}
        if self.rows is not None:
            table["row"] = self.rows
        classes = self.classes or columns.get("classes", [""] * len(self.indices))
        return table | {"score": columns["scores"], "class": classes, "weight": columns["weights"]}

    def _keyed(self, labels: Array | None) -> dict[str, Sequence[Any]]:
        """The same with a key and a rank, as the order of a table in Parquet may be lost; classes only if known."""
        table = self._table(labels)
        first = {"key": table.pop("row", table["index"]), "rank": range(len(self.indices))}
        if self.classes is None and labels is None:
            del table["class"]
        return first | table

    def _columns(self, labels: Array | None) -> dict[str, Tensor]:
        """The columns of a file; weights are one if the method gives none."""
        columns = {
            "indices": self.indices,
            "scores": self.scores,
            "weights": torch.ones_like(self.scores) if self.weights is None else self.weights,
        }
        if labels is not None:
            columns["classes"] = torch.as_tensor(labels, device=self.indices.device)[self.indices]
        return {name: tensor.cpu() for name, tensor in columns.items()}


def require_ending(path: str | Path) -> str:
    """The suffix of a file, if a selection can be written to it."""
    ending = Path(path).suffix
    if ending not in ENDINGS:
        raise AttarError(f"A selection cannot be written to {path}: use a name that ends in {', '.join(ENDINGS)}.")
    return ending


class Selector(Method):
    """A method that picks examples: a frozen dataclass of hyper-parameters with ``select``."""

    needs: ClassVar[Needs] = Needs(features=True)
    nested: ClassVar[bool] = True  #: whether a smaller selection is the start of a larger one
    ranked: ClassVar[bool] = False  #: whether picks are those of highest score, which no other example changes
    counted: ClassVar[bool] = False  #: whether examples that stand for several count as often (``View.counts``)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        """Pick ``size`` examples of a view."""
        raise TypeError(f"{type(self).__name__} must define select")

    def seen(self, view: View) -> View:
        """The view as this method looks at it."""
        return view

    def checked(self, view: View, picked: Selection) -> Selection:
        """The same selection from a view, with a warning if its network misclassifies most picks."""
        seen = self.seen(view)
        if seen.labelled and seen.predicts:
            keep.warn_if_misclassified(seen.logits, seen.hard, picked.indices)
        return picked

    def counting(self) -> Selector:
        """The same method with weights that say how many examples each pick stands for, if it is ``counted``."""
        return self

    def of_classes(self, view: View, sizes: Sequence[int], gen: Generator) -> Selection | None:
        """Pick ``sizes[c]`` examples of each class c at once; None if classes are independent."""
        return None
