"""NumPy archives of plain arrays."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from attar.core.errors import AttarError
from attar.data.formats.find import found
from attar.data.formats.memory import keyed
from attar.data.raw import DAMAGED_ARRAY, RawSplit, join, pack

#: Hiragana in the order of the labels; the last is the iteration mark.
KUZUSHIJI49 = (
    "a", "i", "u", "e", "o", "ka", "ki", "ku", "ke", "ko", "sa", "shi", "su", "se", "so", "ta", "chi", "tsu", "te",
    "to", "na", "ni", "nu", "ne", "no", "ha", "hi", "fu", "he", "ho", "ma", "mi", "mu", "me", "mo", "ya", "yu", "yo",
    "ra", "ri", "ru", "re", "ro", "wa", "wi", "we", "wo", "n", "iteration",
)  # fmt: skip


def read(path: Path) -> RawSplit:
    """The arrays ``x, y`` or ``x_train, y_train, x_test, y_test``; pickled objects are refused."""
    return keyed(_arrays(path), str(path))


def read_kuzushiji49(folder: Path) -> RawSplit:
    """Kuzushiji-49: an archive with one array for images and labels of both sets."""
    train, test = (_kuzushiji(folder, part) for part in ("train", "test"))
    return join(train, test, str(folder))


def _kuzushiji(folder: Path, part: str) -> RawSplit:
    paths = [found(folder, f"k49-{part}-{kind}.npz") for kind in ("imgs", "labels")]
    arrays = [_arrays(path) for path in paths]
    for path, inside in zip(paths, arrays, strict=True):
        if set(inside) != {"arr_0"}:
            raise AttarError(f"{path} holds {', '.join(inside) or 'nothing'}, not one array arr_0: download it again.")
    return pack(arrays[0]["arr_0"], arrays[1]["arr_0"], str(paths[0]), KUZUSHIJI49)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    if not zipfile.is_zipfile(path):
        raise AttarError(f"{path} is not a complete archive of plain arrays: write it again with numpy.savez.")
    try:  # opened here, because numpy.load leaves a damaged archive open
        with path.open("rb") as file, NpzFile(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except MemoryError as error:
        raise AttarError(
            f"{path} needs more memory than there is ({error}): free some, or write it again with numpy.savez."
        ) from error
    except DAMAGED_ARRAY as error:
        reason = str(error).partition("\n")[0]
        raise AttarError(
            f"{path} is not a complete archive of plain arrays ({reason}): write it again with numpy.savez."
        ) from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # numpy gives the bytes of members that are no arrays
            raise AttarError(f"{path} holds {name!r}, which is no array: write it again with numpy.savez.")
    return arrays
