"""NumPy archives of plain arrays."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from attar.core.errors import AttarError
from attar.data.formats.memory import keyed
from attar.data.raw import DAMAGED_ARRAY, RawSplit


def read(path: Path) -> RawSplit:
    """The arrays ``x, y`` or ``x_train, y_train, x_test, y_test``; pickled objects are refused."""
    if not zipfile.is_zipfile(path):
        raise AttarError(f"{path} is not a complete archive of plain arrays: write it again with numpy.savez.")
    return keyed(_arrays(path), str(path))


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
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
