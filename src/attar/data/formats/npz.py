"""NumPy archives of plain arrays."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from attar.core.errors import AttarError
from attar.data.formats.memory import keyed
from attar.data.raw import RawSplit


def read(path: Path) -> RawSplit:
    """The arrays ``x, y`` or ``x_train, y_train, x_test, y_test``; pickled objects are refused."""
    if not zipfile.is_zipfile(path):
        raise AttarError(f"{path} is not a complete archive of plain arrays: write it again with numpy.savez.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = str(error).partition("\n")[0]
        raise AttarError(
            f"{path} is not a complete archive of plain arrays ({reason}): write it again with numpy.savez."
        ) from error
    return keyed(arrays, str(path))
