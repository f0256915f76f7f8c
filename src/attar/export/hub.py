"""Export as a data set of the Hugging Face ``datasets`` package, with its card."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from attar.core.errors import require
from attar.core.text import visible
from attar.coreset import Coreset
from attar.export.numbers import class_names, feature_columns, free, is_text, write_csv
from attar.export.pictures import LIST
from attar.recipe import Recipe
from attar.report.images import is_image, tile

_SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M"}

_CARD = """---
{front}---

# {title}

A coreset of {examples:,} examples that replaces the training set of {data}, made with the Python library attar.

| | |
|---|---|
| Examples | {examples:,} ({amount}) |
| Classes | {classes} |
| Method | {method} |
| Network | {network} |
| Cost | {wall:.1f} s wall time, {cpu:.1f} s processor time, {memory:,.0f} MB peak memory |
| Library | attar {version} |

## How to load

```python
{load}
```

`{list}` holds the row in the original data, the index in the training set, the label, the class and the weight of every
example, one per line.

## Recipe

```json
{recipe}
```
"""

_FROM_DISK = """import datasets
data = datasets.load_from_disk("path/to/this/folder")

import attar
split = attar.load("path/to/this/folder", target="label")"""


def write_hub(coreset: Coreset, path: Path) -> None:
    """What ``datasets.load_from_disk`` reads: images or one column for each feature, and ``label``; and ``README.md``.

    Weights and indices are in ``examples.csv``, because readers of tables treat every column as a feature.
    """
    datasets = require("datasets", "hf")
    with no_bars(datasets):
        table(coreset).save_to_disk(str(path))
    write_csv(coreset, path / LIST)
    (path / "README.md").write_text(card(coreset), encoding="utf-8")


def table(coreset: Coreset) -> Any:
    """The examples as a ``datasets.Dataset``."""
    datasets = require("datasets", "hf")
    columns: dict[str, Any]
    features: dict[str, Any] = {}  # types that the values themselves do not give
    if is_image(coreset.data.spec.element):
        columns = {"image": [tile(pixels, 1) for pixels in coreset.pixels()]}
        features = {"image": datasets.Image()}
    else:
        columns = feature_columns(coreset)
    label = free("label", columns)
    columns = {**columns, label: coreset.data.hard.tolist()}
    features[label] = datasets.ClassLabel(names=class_names(coreset))
    with no_bars(datasets):
        made = datasets.Dataset.from_dict(columns)
        for name, feature in features.items():
            made = made.cast_column(name, feature)
    return made


def card(coreset: Coreset, load: str = _FROM_DISK, more: Mapping[str, Any] | None = None) -> str:
    """The data set card; text from data or recipe is escaped.

    Args:
        coreset: What it describes.
        load: Python code that loads it.
        more: Further entries of the card's metadata.
    """
    recipe, names = coreset.recipe, class_names(coreset)
    title = f"{recipe.data} in {len(coreset)} examples"
    front = {
        "pretty_name": title,
        "size_categories": [next((name for size, name in _SIZES.items() if len(coreset) < size), "n>1M")],
        "task_categories": [f"{_task(coreset)}-classification"],
        "tags": ["attar", "coreset", "dataset-distillation"],
        **(more or {}),
    }
    return _CARD.format(
        front=require("yaml", "hf").safe_dump(front, sort_keys=False, allow_unicode=True),
        title=_escape(title),
        data=_escape(recipe.data),
        examples=len(coreset),
        amount=_escape(recipe.amount),
        classes=f"{len(names)}: {', '.join(map(_escape, names))}",
        method=_escape(recipe.method),
        network=_escape(recipe.network),
        wall=recipe.cost.wall,
        cpu=recipe.cost.cpu,
        memory=recipe.cost.memory / 1e6,
        version=_escape(recipe.version),
        list=LIST,
        load=load,
        # Newlines inside values are escaped, so no line can start with the backticks that would end the block.
        recipe=json.dumps(TypeAdapter(Recipe).dump_python(recipe, mode="json"), indent=2),
    )


def _task(coreset: Coreset) -> str:
    if is_text(coreset):
        return "text"
    return "image" if is_image(coreset.data.spec.element) else "tabular"


def _escape(text: str) -> str:
    """Text escaped for Markdown and HTML, on one line."""
    plain = html.escape(visible(" ".join(text.split())), quote=False)
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|~:@])", r"\\\1", plain)


@contextmanager
def no_bars(datasets: Any) -> Iterator[None]:
    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()
