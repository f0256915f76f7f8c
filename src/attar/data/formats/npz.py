"""NumPy archives of plain arrays."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from attar.core import budget
from attar.core.errors import AttarError
from attar.core.files import require_read
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
    return keyed(read_arrays(path), str(path))


def read_kuzushiji49(folder: Path) -> RawSplit:
    """Kuzushiji-49: an archive with one array for images and labels of both sets."""
    train, test = (_kuzushiji(folder, part) for part in ("train", "test"))
    return join(train, test, str(folder))


def _kuzushiji(folder: Path, part: str) -> RawSplit:
    paths = [found(folder, f"k49-{part}-{kind}.npz") for kind in ("imgs", "labels")]
    arrays = [read_arrays(path) for path in paths]
    for path, inside in zip(paths, arrays, strict=True):
        if set(inside) != {"arr_0"}:
            raise AttarError(f"{path} holds {', '.join(inside) or 'nothing'}, not one array arr_0: download it again.")
    return pack(arrays[0]["arr_0"], arrays[1]["arr_0"], str(paths[0]), KUZUSHIJI49)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an archive, by name; pickled objects are refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {info.filename.removesuffix(".npy"): _array(archive, info, path) for info in archive.infolist()}
    except AttarError:
        raise
    except MemoryError as error:
        raise AttarError(
            f"{path} needs more memory than there is ({error}): free some, or write it again with numpy.savez."
        ) from error
    except DAMAGED_ARRAY as error:
        require_read(path, error)
        reason = str(error).partition("\n")[0]
        raise AttarError(
            f"{path} is not a complete archive of plain arrays ({reason}): write it again with numpy.savez."
        ) from error


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> NDArray[Any]:
    """One member, read only after its header was checked: it may say or unpack to any size."""
    if not info.filename.endswith(".npy"):
        raise AttarError(f"{path} holds {info.filename!r}, which is no array: write it again with numpy.savez.")
    with archive.open(info) as file:
        version = npy.read_magic(file)
        shape, _, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
    if math.prod(shape) * dtype.itemsize > info.file_size and not dtype.hasobject:
        raise ValueError(f"{info.filename} is shorter than its header says")
    budget.claim_array(shape, dtype.itemsize, f"{info.filename} of {path}")
    with archive.open(info) as file:
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    if dtype.kind == "U" and dtype.itemsize and not _is_text(array):
        raise ValueError(f"{info.filename} holds no text")
    return array


def _is_text(array: NDArray[Any]) -> bool:
    """Whether every number in an array of texts is a character; making a string of others fails, or crashes later."""
    codes = np.ascontiguousarray(array).reshape(-1).view(np.dtype("u4").newbyteorder(array.dtype.byteorder))
    return bool(((codes <= 0x10FFFF) & ((codes < 0xD800) | (codes > 0xDFFF))).all())
