"""Arrays, tensors and data set objects in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

from attar.core.errors import AttarError
from attar.data import tables
from attar.data.formats import hf, table
from attar.data.raw import Raw, RawSplit, join, pack
from attar.data.spec import Table

KEYS = ("x_train", "y_train", "x_test", "y_test")


def read(source: object, target: str | None = None) -> RawSplit:
    """A pair ``(x, y)``, a DataFrame, a Hugging Face data set, or a map-style data set of ``(example, label)``."""
    if hf.is_loaded(source):
        return hf.read_loaded(source, target)
    if is_frame(source):
        return table.read_frame(source, target)
    if target is not None:
        raise AttarError(f"{type(source).__name__} has no columns, so target={target!r} is not used: leave target out.")
    if isinstance(source, tuple | list) and len(source) == 2:
        return _pair(*source)
    if isinstance(source, Dataset) and not isinstance(source, IterableDataset) and hasattr(source, "__len__"):
        return _dataset(source)
    raise AttarError(
        f"Data cannot be loaded from {type(source).__name__}: give a name, a path, a pair (x, y), a DataFrame with "
        "target=, a Hugging Face data set, a map-style torch Dataset, or a mapping with 'train' and 'test'."
    )


def is_frame(source: object) -> bool:
    """Whether this is a pandas DataFrame, without importing pandas."""
    return type(source).__name__ == "DataFrame" and type(source).__module__.startswith("pandas")


def rows_of(frame: Any, element: Table) -> Tensor:
    """The rows of a DataFrame as the numbers of these columns; other columns are not used."""
    wanted = [field.name for field in element.fields]
    x, headers = table.examples({str(k): frame[k] for k in frame.columns if str(k) in wanted}, "the DataFrame")
    raw = Raw(x, np.zeros(len(x), np.int64), np.arange(len(x)), columns=tuple(headers))
    return tables.encode(raw, element, "the DataFrame", "given")


def _pair(x: Any, y: Any) -> RawSplit:
    """Examples and labels: arrays, tensors, lists of texts, or a DataFrame of features with a Series of labels."""
    if is_frame(x):
        names = [str(name) for name in x.columns]
        table.require_distinct(names, "(x, y)")
        rows, headers = table.examples({name: x.iloc[:, k] for k, name in enumerate(names)}, "(x, y)")
        return pack(rows, to_numpy(y), "(x, y)", columns=headers)
    return pack(to_numpy(x), to_numpy(y), "(x, y)")


def keyed(arrays: Mapping[str, NDArray[Any]], where: str) -> RawSplit:
    """Arrays under ``x, y`` and perhaps ``classes`` (names), or ``x_train, y_train`` and perhaps ``x_test, y_test``."""
    names = set(arrays)
    if {"x", "y"} <= names:
        classes = [str(name) for name in arrays["classes"].flat] if "classes" in names else None
        return pack(arrays["x"], arrays["y"], where, classes)
    if not set(KEYS[:2]) <= names or len(names & set(KEYS[2:])) == 1:
        raise AttarError(
            f"{where} has the keys {', '.join(sorted(names)) or 'none'}: save x and y, or {', '.join(KEYS)}."
        )
    train = pack(arrays["x_train"], arrays["y_train"], where)
    return join(train, pack(arrays["x_test"], arrays["y_test"], where), where) if "x_test" in names else train


def to_numpy(value: object) -> NDArray[Any]:
    """An array from a tensor, array, list or image."""
    if isinstance(value, Tensor):
        plain = value.detach().cpu()
        return (plain.float() if plain.is_floating_point() else plain).numpy()
    try:
        return np.asarray(value)
    except ValueError as error:
        raise AttarError("The examples differ in shape: give every example the same shape.") from error


def _dataset(source: Any) -> RawSplit:
    where = type(source).__name__
    examples: list[NDArray[Any]] = []
    labels: list[NDArray[Any]] = []
    for index in range(len(source)):
        item = source[index]
        example, label = _item(item, index, where)
        examples.append(to_numpy(example))
        labels.append(to_numpy(label))
        if examples[-1].shape != examples[0].shape:
            raise AttarError(
                f"Examples 0 and {index} of {where} have shapes {examples[0].shape} and {examples[-1].shape}: "
                "resize them to one shape in the Dataset."
            )
    if not examples:
        raise AttarError(f"{where} is empty: give at least one example of every class.")
    names = getattr(source, "classes", None)
    numbered = labels[0].dtype.kind not in "US"
    classes = tuple(map(str, names)) if numbered and isinstance(names, tuple | list) else None
    return pack(np.stack(examples), np.stack(labels), where, classes)


def _item(item: Any, index: int, where: str) -> tuple[Any, Any]:
    """Example and label of one item: a pair, or a mapping with a label column and one other."""
    if isinstance(item, Mapping):
        label = table.pick([str(name) for name in item], None, f"Item {index} of {where}")
        others = [name for name in item if name != label]
        if len(others) == 1:
            return item[others[0]], item[label]
    elif isinstance(item, tuple | list) and len(item) == 2:
        return item[0], item[1]
    raise AttarError(
        f"Item {index} of {where} is not a pair: give a Dataset of (example, label), or of mappings with one example "
        "and one label."
    )
