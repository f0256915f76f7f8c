"""The examples of coresets, by class."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from attar.core.errors import AttarError
from attar.core.files import inside
from attar.coreset import Coreset
from attar.data import Tokens
from attar.data.data import effective_count
from attar.report.blocks import Table
from attar.report.images import data_uri, heat_strip, is_image, standardise, strip
from attar.report.readable import named, values
from attar.report.rows import Row

EXAMPLES = 10  #: shown of one class
CLASSES = 20  #: shown of one coreset
COLUMNS = 12  #: of a table, whose values are shown


@dataclass(frozen=True)
class Strip:
    """The examples of one class in one picture."""

    name: str
    alt: str
    uri: str
    width: int
    height: int


class Text(NamedTuple):
    """The words of an example, and where it comes from; empty for a learnt one."""

    words: str
    name: str


@dataclass(frozen=True)
class Gallery:
    """The coreset of a row's first seed; a note instead if its file cannot be shown."""

    row: Row
    seed: int
    strips: list[Strip] = field(default_factory=list)
    texts: list[tuple[str, list[Text]]] = field(default_factory=list)  #: class and its examples, for texts
    table: Table | None = None  #: classes, rows and values, for tables
    notes: list[str] = field(default_factory=list)
    pictures: bool = True
    recipe: dict[str, Any] = field(default_factory=dict)
    coreset: Coreset | None = None


def galleries(table: list[Row], folder: Path) -> list[Gallery]:
    """A gallery for every reduced row."""
    return [_gallery(row, folder) for row in table if not row.full]


def _gallery(row: Row, folder: Path) -> Gallery:
    run = min(row.runs, key=lambda run: run.seed)
    if run.coreset is None:
        return Gallery(row, run.seed, notes=["This run has no coreset file."])
    if (file := inside(folder, run.coreset)) is None:
        return Gallery(
            row, run.seed, notes=[f"The file {run.coreset} is not in the study’s folder, so it is not shown."]
        )
    try:
        coreset = Coreset.load(file, force=True)
    except AttarError:
        return Gallery(row, run.seed, notes=[f"The file {run.coreset} is not a complete coreset, so it is not shown."])
    element = coreset.data.spec.element
    notes, recipe = [*weights(coreset), *_cuts(coreset)], asdict(replace(coreset.recipe, origin=None))
    if isinstance(element, Tokens):
        return Gallery(row, run.seed, texts=_texts(coreset), notes=notes, recipe=recipe, coreset=coreset)
    pictures = is_image(element)
    return Gallery(
        row,
        run.seed,
        _strips(coreset, pictures),
        table=_values(coreset, row.label),
        notes=notes,
        pictures=pictures,
        recipe=recipe,
        coreset=coreset,
    )


def _texts(coreset: Coreset) -> list[tuple[str, list[Text]]]:
    names, labels = _names(coreset), coreset.data.hard.tolist()
    texts = list(map(Text, coreset.texts(), names))
    found = []
    for c, name in enumerate(coreset.data.spec.target.names[:CLASSES]):
        chosen = [text for text, label in zip(texts, labels, strict=True) if label == c][:EXAMPLES]
        if chosen:
            found.append((name, chosen))
    return found


def _names(coreset: Coreset) -> list[str]:
    """The row of every picked example; empty for learnt ones."""
    data = coreset.data
    return [named(data, i, "") if data.rows is not None else "" for i in range(len(data))]


def _values(coreset: Coreset, label: str) -> Table | None:
    """The values of the first columns of every example shown, for tables."""
    columns = values(coreset.data)
    if columns is None:
        return None
    names, classes = list(columns)[:COLUMNS], coreset.data.spec.target.names
    rows, labels = _names(coreset), coreset.data.hard
    shown = [
        i for c in range(min(len(classes), CLASSES)) for i in (labels == c).nonzero().flatten()[:EXAMPLES].tolist()
    ]
    head = ["Class", *(["Row"] if any(rows) else []), *names, *(["…"] if len(names) < len(columns) else [])]
    lines = [
        [
            classes[int(labels[i])],
            *([rows[i].removeprefix("row ")] if any(rows) else []),
            *(columns[n][i] for n in names),
        ]
        + [""] * (len(names) < len(columns))
        for i in shown
    ]
    return Table(f"Values of the examples of {label}", head, lines)


def _strips(coreset: Coreset, pictures: bool) -> list[Strip]:
    values, labels = coreset.pixels() if pictures else standardise(coreset.data.x), coreset.data.hard
    found = []
    for c, name in enumerate(coreset.data.spec.target.names[:CLASSES]):
        chosen = values[labels == c][:EXAMPLES]
        if len(chosen):
            image = strip(chosen) if pictures else heat_strip(chosen)
            found.append(_strip(name, f"{len(chosen)} of class {name}", image))
    return found


def _strip(name: str, alt: str, image: Image.Image) -> Strip:
    return Strip(name, alt, data_uri(image), image.width, image.height)


def weights(coreset: Coreset) -> list[str]:
    """A note on the range of the weights, if there are any."""
    found = coreset.data.weights
    if found is None:
        return []
    relative = found / found.mean()
    idle = int((found == 0).sum())
    zero = f"; {idle} of {len(found)} have weight zero" if idle else ""
    span = f"{float(relative.min()):.2g} to {float(relative.max()):.2g} times the mean"
    worth = f"they are worth {effective_count(found):.1f} of {len(found)} equal ones (Kish’s effective sample size)"
    return [f"Examples are weighted in training, from {span}{zero}; {worth}."]


def _cuts(coreset: Coreset) -> list[str]:
    """Notes on what is not shown."""
    classes, labels = coreset.data.spec.target.names, coreset.data.hard
    notes = []
    if len(classes) > CLASSES:
        notes.append(f"The first {CLASSES} of {len(classes)} classes are shown.")
    if int(labels.bincount().max()) > EXAMPLES:
        notes.append(f"At most {EXAMPLES} examples per class are shown.")
    return notes
