"""Load data by name, from paths, from arrays or from data set objects."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

from attar.core import budget
from attar.core.device import device_of
from attar.core.errors import AttarError, unknown
from attar.data.cooccurrence import LEARNT
from attar.data.damage import Damage
from attar.data.data import Data
from attar.data.download import Progress, provide
from attar.data.formats import digits, hf, images, memory
from attar.data.raw import RawSplit, is_text, join
from attar.data.readers import EMBEDDED, FILES, GLOVE, HUB, NAMES, SHARED, TEXTS, format_of
from attar.data.spec import Spec
from attar.data.split import Origin, Reading, Split, build
from attar.data.tables import Schema, schema_of

#: What ``load`` takes. DataFrames and Hugging Face data sets come on top: their packages are extras.
Source = str | Path | tuple[Any, Any] | Dataset[Any] | Mapping[str, Any] | Any


def load(
    source: Source,
    *,
    val: float = 0.1,
    test: float = 0.2,
    seed: int = 0,
    scaling: str = "standard",
    target: str | None = None,
    vectors: str | Path | None = None,
    length: int | None = None,
    columns: Schema | str | None = None,
    resize: int | str | tuple[int, int] | None = None,
    like: Spec | None = None,
    imbalance: float = 1.0,
    flip: float = 0.0,
    root: str | Path | None = None,
    download: bool = True,
    progress: Progress | None = None,
    max_bytes: int | str | None = None,
) -> Split:
    """Load a data set as train, validation and test sets; the scaling is fitted on train.

    Args:
        source: A known name (``digits``, ``mnist``, ``fashion-mnist``, ``kmnist``, ``emnist``, ``cifar10``,
            ``cifar100``, ``svhn``, ``kuzushiji49``, ``tiny-imagenet``, ``imdb``, ``trec6``, ``trec50``, ``sst5``),
            ``hf:owner/name``, a path, a pair ``(x, y)`` of arrays, tensors or texts, a pandas DataFrame, a Hugging Face
            ``Dataset`` or ``DatasetDict``, a map-style torch data set of ``(example, label)``, or a mapping of
            ``train``, and perhaps ``test`` and ``val``, to any of these.
        val: Share of every class to hold out from train for validation, if the source has no validation set.
        test: Share of every class to hold out from train before that, if the source has no test set.
        seed: Decides which examples are held out for validation; a held-out test set is always the same.
        scaling: ``standard``, ``zca`` or ``none``; uint8 pixels are divided by 255 before.
        target: The label column of a table or DataFrame; by default the one called label, target, class or y.
        vectors: File of word vectors for texts, in the format of GloVe, or ``learnt`` for vectors learnt from the
            training texts. By default vectors are hashed; for known data sets they come from the first file
            ``glove*.txt`` in the folder ``glove`` under ``root``, if there is one.
        length: Words per text: longer texts are cut, shorter ones padded; by default 95 % are not cut.
        columns: Kinds of the columns of a table that are not to be inferred, such as ``{"age": "numeric", "size":
            ["small", "medium", "large"], "note": "skip"}``: ``numeric``, ``boolean``, ``ordinal``, ``category``,
            ``date``, ``text``, or ``skip`` to leave it out; a list gives the values of an ordinal in order. Or the same
            as a text, ``age:numeric,size:small<medium<large``.
        resize: Height and width that images are brought to, such as ``32`` or ``32x48``; by default all must have one
            size and keep it.
        like: A spec, such as that of a coreset, whose vocabulary, length and embeddings of texts, or columns of tables,
            are used again.
        imbalance: Make classes of train rare on purpose: the first keeps this many times as many examples as the last.
        flip: Share of the labels of train to change on purpose, to another class.
        root: Folder of known data sets, one sub-folder each; by default ``$ATTAR_DATA``, else ``~/.cache/attar/data``.
        download: Whether a known data set that is missing may be downloaded from its official source.
        progress: Called during a download with the file's name, the bytes so far and the total bytes.
        max_bytes: Memory that the files may take, such as ``2GB``; more is refused before it is allocated. By default
            ``$ATTAR_MAX_BYTES``, else three quarters of the free memory.
    """
    place = Path(root or os.environ.get("ATTAR_DATA") or "~/.cache/attar/data").expanduser()
    where = str(source) if isinstance(source, str | Path) else "the data given"
    given = vectors if vectors is None or vectors == LEARNT else Path(vectors).expanduser().resolve()
    kinds = schema_of(columns)
    reading = Reading(length, given or _glove(source, place / GLOVE), like, kinds)
    size = images.size_of(resize)
    with budget.within(max_bytes), images.resizing(size):
        known = partial(_known, root=place, download=download, progress=progress)
        split = build(
            _sized(_read(source, target, known), size, where),  # without a name, so that it is freed on the way
            _name(source),
            where,
            val=val,
            test=test,
            seed=seed,
            scaling=scaling,
            reading=reading,
            damage=Damage(imbalance, flip),
        )
    places = _places(source)
    if places is None:
        return split
    named = None if given is None else str(given)
    made = Origin(*places, target, scaling, val, test, seed, named, length, float(imbalance), float(flip), kinds)
    made = made if size is None else replace(made, resize="x".join(map(str, size)))
    return replace(split, origin=made)


def _sized(raw: RawSplit, size: tuple[int, int] | None, where: str) -> RawSplit:
    """The same with all images in the size that is asked for, if one is."""
    if size is None:
        return raw
    parts = {name: part._replace(x=images.resized(part.x, where)) for name, part in raw.parts().items()}
    return raw._replace(train=parts["train"], test=parts.get("test"), val=parts.get("val"))


def _glove(source: Source, folder: Path) -> Path | None:
    """The default word vectors of a known data set of texts."""
    name = source["train"] if isinstance(source, Mapping) and "train" in source else source
    return min(folder.glob("glove*.txt"), default=None) if isinstance(name, str) and name in TEXTS else None


def loaded(source: Source | Split | Data, device: torch.device | str | None = None) -> Split | Data:
    """A ``Split`` or ``Data`` as it is, anything else with the defaults of ``load``; moved to ``device`` if given."""
    place = None if device is None else device_of(device)
    found = source if isinstance(source, Split | Data) else load(source)
    return found if place is None else found.to(place)


def is_known(name: str) -> bool:
    """Whether this is the name of a known data set."""
    return name in NAMES or name == EMBEDDED


def _places(source: Source) -> tuple[str, str | None] | None:
    """Names or absolute paths of the training set and of a separate test set; None for data in memory."""
    if isinstance(source, Mapping) and set(source) <= {"train", "test"}:
        parts = [_places(source[part]) for part in source]
        if any(part is None or part[1] is not None for part in parts):
            return None
        found = [part[0] for part in parts if part is not None]
        return found[0], found[1] if len(found) > 1 else None
    if not isinstance(source, str | Path):
        return None
    named = isinstance(source, str) and (is_known(source) or source.startswith(HUB))
    return str(source) if named else str(Path(source).expanduser().resolve()), None


def _name(source: Source) -> str:
    if isinstance(source, Mapping) and "train" in source:
        return _name(source["train"])
    if isinstance(source, str) and (is_known(source) or source.startswith(HUB)):
        return source
    if not isinstance(source, str | Path):
        return "data"
    path = Path(source).expanduser().resolve()
    return path.name if path.is_dir() else path.stem


def _read(source: Source, target: str | None, known: Callable[[str, str | None], RawSplit]) -> RawSplit:
    if isinstance(source, Mapping) and not hf.is_loaded(source):
        return _parts(source, target, known)
    if isinstance(source, str) and (is_known(source) or source.startswith(HUB)):
        if Path(source).exists():
            warnings.warn(
                f"{source!r} is loaded as the known data set of that name: for the file or folder write './{source}'.",
                stacklevel=3,
            )
        return known(source, target)
    if isinstance(source, str | Path):
        return _path(Path(source).expanduser(), str(source), target)
    return memory.read(source, target)


def _known(name: str, target: str | None, root: Path, download: bool, progress: Progress | None) -> RawSplit:
    if name.startswith(HUB):
        return _counted(hf.read_hub(name.removeprefix(HUB), target, root / "hf", online=download), name)
    _no_columns(target, name)
    if name == EMBEDDED:
        return digits.read()
    place = root / SHARED.get(name, name)
    provide(name, place, online=download, progress=progress)
    return _counted(NAMES[name](place), name)


def _path(path: Path, given: str, target: str | None) -> RawSplit:
    if not path.exists():
        if path.suffix or len(path.parts) > 1:
            raise AttarError(f"There is no file or folder {path}: check the path.")
        names = ", ".join(sorted((*NAMES, EMBEDDED)))
        otherwise = f"give a name ({names}), hf:owner/name, or the path of a file or folder."
        raise unknown("data set", given, (*NAMES, EMBEDDED), otherwise)
    format = format_of(path)
    if format is None:
        kinds = ", ".join(format.pattern for format in FILES)
        raise AttarError(f"The format of {path} is not supported: give a folder or {kinds}.")
    if format.columns:
        return _counted(format.read(path, target), given)
    _no_columns(target, given)
    return _counted(format.read(path), given)


def _counted(raw: RawSplit, what: str) -> RawSplit:
    """Claim the float32 copies that numbers become."""
    parts = [part for part in raw.parts().values() if part.columns is None and not is_text(part.x)]
    budget.claim(4 * sum(part.x.size for part in parts), what)
    return raw


def _parts(source: Mapping[str, Any], target: str | None, known: Callable[[str, str | None], RawSplit]) -> RawSplit:
    if "train" not in source or not set(source) <= {"train", "test", "val"}:
        keys = ", ".join(map(repr, source)) or "none"
        raise AttarError(
            f"A mapping of data needs 'train' and may have 'test' and 'val', got {keys}: rename or leave out the rest."
        )
    parts = {part: _read(value, target, known) for part, value in source.items()}
    for part, raw in parts.items():
        if len(parts) > 1 and (raw.test is not None or raw.val is not None):
            raise AttarError(
                f"The source under {part!r} has a test or validation set of its own: load it alone, or give its parts."
            )
    found = parts["train"]
    if "test" in parts:
        found = join(found, parts["test"], "the mapping")
    return join(found, parts["val"], "the mapping", "validation") if "val" in parts else found


def _no_columns(target: str | None, what: str) -> None:
    if target is not None:
        raise AttarError(f"{what} has no columns, so target={target!r} is not used: leave target out.")
