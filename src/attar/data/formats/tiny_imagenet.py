"""Tiny ImageNet: 200 classes of 64×64 images, in the official archive or unpacked."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attar.core import budget
from attar.core.errors import AttarError, MissingFile
from attar.core.files import read_bytes, require_read
from attar.data.formats.images import decode, stack
from attar.data.raw import DAMAGED_ARCHIVE, RawSplit, join, pack

INSIDE = "tiny-imagenet-200"
ARCHIVE = f"{INSIDE}.zip"
TRAIN = re.compile(r"train/(n\d+)/images/[^/]+\.JPEG")


class Files(NamedTuple):
    """The names of all files, and what reads one."""

    names: list[str]
    read: Callable[[str], bytes]
    where: Path


def read(folder: Path) -> RawSplit:
    """The training images, and as test set the official validation images, as the test images have no labels."""
    place = next((place for place in (folder / INSIDE, folder) if (place / "wnids.txt").is_file()), None)
    if place is not None:
        names = [path.relative_to(place).as_posix() for path in place.glob("train/*/images/*.JPEG")]
        return _sets(Files(names, lambda name: read_bytes(place / name, 0), place))
    try:
        with zipfile.ZipFile(folder / ARCHIVE) as packed:
            names = [name.removeprefix(f"{INSIDE}/") for name in packed.namelist()]
            return _sets(Files(names, lambda name: _member(packed, f"{INSIDE}/{name}"), folder / ARCHIVE))
    except AttarError:
        raise
    except DAMAGED_ARCHIVE as error:
        require_read(folder / ARCHIVE, error)
        raise AttarError(f"{folder / ARCHIVE} is not a complete archive ({error}): download it again.") from error


def _member(packed: zipfile.ZipFile, name: str) -> bytes:
    budget.claim(0, f"{name} of {packed.filename}", passing=packed.getinfo(name).file_size)
    return packed.read(name)


def _sets(files: Files) -> RawSplit:
    ids = _text(files, "wnids.txt").split()
    rows = [line.split("\t")[:2] for line in _text(files, "val/val_annotations.txt").splitlines() if line.strip()]
    held = [(f"val/images/{row[0]}", row[-1]) for row in rows]
    train = [(name, match[1]) for name in sorted(files.names) if (match := TRAIN.fullmatch(name))]
    titles = _titles(_text(files, "words.txt"), ids)
    return join(_images(files, train, ids, titles), _images(files, held, ids, titles), str(files.where))


def _titles(words: str, ids: list[str]) -> list[str]:
    """The first name of every class, as ``words.txt`` says; the ids where two have the same."""
    known = dict(line.split("\t", 1) for line in words.splitlines() if "\t" in line)
    found = [known.get(key, key).partition(",")[0].strip() for key in ids]
    return found if len(set(found)) == len(found) else ids


def _images(files: Files, named: Iterable[tuple[str, str]], ids: list[str], titles: list[str]) -> RawSplit:
    place = {key: label for label, key in enumerate(ids)}
    names, labels, pixels = [], [], []
    for name, key in named:
        if key not in place:
            raise AttarError(f"{name} of {files.where} has class {key}, which wnids.txt lacks: unpack it again.")
        names.append(name)
        labels.append(place[key])
        pixels.append(decode(BytesIO(_bytes(files, name)), f"{name} of {files.where}"))
    if not names:
        raise AttarError(f"{files.where} holds no images: put the official {ARCHIVE} there.")
    return pack(stack(pixels, names), np.array(labels, dtype=np.int64), str(files.where), titles, keys=names)


def _text(files: Files, name: str) -> str:
    return _bytes(files, name).decode("utf-8", "replace")


def _bytes(files: Files, name: str) -> bytes:
    try:
        return files.read(name)
    except (KeyError, MissingFile) as error:
        raise AttarError(f"There is no file {name} in {files.where}: put the official {ARCHIVE} there.") from error
