"""Exports as numbers: arrays, a table, a list of the examples."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attar.core.errors import require
from attar.core.text import csv_text
from attar.coreset import Coreset
from attar.data import Image, Table, Tokens, Vector


def class_names(coreset: Coreset) -> list[str]:
    """The names of the classes; their numbers if the data has no names."""
    return list(coreset.data.spec.target.names or map(str, range(coreset.data.classes)))


def write_npz(coreset: Coreset, path: Path) -> None:
    """Arrays ``x``, ``y``, ``classes``, and any ``soft``, ``weights``, ``indices``, ``rows`` and ``columns``.

    ``rows`` are the user's own row numbers or keys, ``indices`` positions in ``split.train``. Texts are strings.

    ``y`` holds whole numbers, so that every reader of ``x, y`` archives, including ``attar.load``, accepts the file.
    """
    soft = coreset.data.y if coreset.data.y.ndim == 2 else None
    optional = {"soft": soft, "weights": coreset.data.weights, "indices": coreset.indices}
    arrays = {
        "x": np.array(coreset.texts()) if is_text(coreset) else _array(coreset.pixels().float()),
        "y": _array(coreset.data.hard),
        "classes": np.array(class_names(coreset)),
    }
    arrays |= {name: _array(tensor) for name, tensor in optional.items() if tensor is not None}
    if coreset.rows is not None:
        arrays["rows"] = np.array(coreset.rows)
    if isinstance(coreset.data.spec.element, Vector):
        arrays["columns"] = np.array(coreset.data.spec.element.columns)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def write_parquet(coreset: Coreset, path: Path) -> None:
    """One column for each pixel or column of a table, or one of texts, and ``label``.

    Readers of tables treat every other column as a feature. So class names, weights, rows and indices are not columns,
    but JSON under the key ``attar`` of the schema's metadata, and so are soft labels and, for tables, the numbers that
    networks are trained on.
    """
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    columns = {name: arrow.array(values) for name, values in feature_columns(coreset).items()}
    element = coreset.data.spec.element
    columns[free("label", columns)] = arrow.array(_array(coreset.data.hard))
    about = {
        "classes": class_names(coreset),
        "shape": coreset.data.shape,
        "soft": coreset.data.y.tolist() if coreset.soft else None,
        "weights": None if coreset.data.weights is None else coreset.data.weights.tolist(),
        "indices": None if coreset.indices is None else coreset.indices.tolist(),
        "rows": coreset.rows,
        "numbers": coreset.data.x.tolist() if isinstance(element, Table) else None,
        "columns": element.columns if isinstance(element, Table) else None,
    }
    parquet.write_table(arrow.table(columns, metadata={"attar": json.dumps(about)}), path)


def write_csv(coreset: Coreset, path: Path) -> None:
    """One line per example: its row in the user's data (empty if it was learnt), label, class and weight.

    Soft labels or regression targets follow, one column a class, and then the values of a table or the text. Text that
    a spreadsheet would run as a formula begins with an apostrophe.
    """
    names, labels = class_names(coreset), coreset.data.hard.tolist()
    indices = [""] * len(coreset) if coreset.indices is None else coreset.indices.tolist()
    rows = coreset.rows or [""] * len(coreset)
    weights = [1.0] * len(coreset) if coreset.data.weights is None else coreset.data.weights.tolist()
    targets = coreset.data.y.tolist() if coreset.soft else [[]] * len(coreset)
    heads = ["row", "index", "label", "class", "weight", *(f"target {name}" for name in names if coreset.soft)]
    values = {} if isinstance(coreset.data.spec.element, Image) else feature_columns(coreset)
    others = zip(*values.values(), strict=True) if values else [()] * len(coreset)
    lines: list[list[object]] = [[*heads, *(free(name, heads) for name in values)]]
    for row, index, label, weight, target, own in zip(rows, indices, labels, weights, targets, others, strict=True):
        lines.append([row, index, label, names[label], weight, *target, *own])
    path.write_text(csv_text(lines), encoding="utf-8")


def free(name: str, taken: Collection[str]) -> str:
    """A name for a column that no other column has."""
    return free(f"{name} value", taken) if name in taken else name


def feature_columns(coreset: Coreset) -> dict[str, Any]:
    """The examples column by column: the values of a table, texts, or flattened numbers."""
    element = coreset.data.spec.element
    if isinstance(element, Tokens):
        return {"text": np.array(coreset.texts())}
    if isinstance(element, Table):
        return coreset.values()
    flat = _array(coreset.pixels().float().flatten(1))
    named = element.columns if isinstance(element, Vector) else [f"x{i}" for i in range(flat.shape[1])]
    return dict(zip(named, flat.T, strict=True))


def is_text(coreset: Coreset) -> bool:
    return isinstance(coreset.data.spec.element, Tokens)


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().numpy()
