"""Rows of .npy files: memory-mapped where they are local, read by ranges of bytes where they are not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from attar.core.errors import AttarError
from attar.data.mapped import open_array
from attar.data.parts import files


class Ranges:
    """An array in an open file, of which only the rows that are asked for are read.

    Args:
        file: The file, at its beginning.
        path: Its address, for errors.
    """

    def __init__(self, file: Any, path: str) -> None:
        try:
            read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(file)]
            self.shape, columns_first, self.dtype = read(file)
        except (ValueError, KeyError) as error:
            reason = str(error).partition("\n")[0]
            raise AttarError(f"{path} is not a complete .npy file ({reason}): write it with numpy.save.") from error
        if self.dtype.kind not in "fiu" or not self.shape:
            raise AttarError(f"{path} does not hold an array of numbers: write one with numpy.save.")
        if columns_first and len(self.shape) > 1:
            raise AttarError(f"{path} is written column by column: write numpy.ascontiguousarray of it instead.")
        self.file, self.path, self.begin = file, path, file.tell()

    def __len__(self) -> int:
        return self.shape[0]

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Consecutive rows."""
        shape = (stop - start, *self.shape[1:])
        wide = prod(self.shape[1:]) * self.dtype.itemsize
        self.file.seek(self.begin + start * wide)
        content = self.file.read(shape[0] * wide)
        if len(content) < shape[0] * wide:
            raise AttarError(f"{self.path} is not a complete .npy file (it ends early): write it with numpy.save.")
        return np.frombuffer(content, self.dtype).reshape(shape)


class Local:
    """A local array, with the same words."""

    def __init__(self, path: str) -> None:
        self.array = open_array(Path(path))
        self.shape, self.dtype = self.array.shape, self.array.dtype

    def __len__(self) -> int:
        return len(self.array)

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Consecutive rows."""
        return self.array[start:stop]


@contextmanager
def opened(path: str) -> Iterator[Ranges | Local]:
    """The array of a path or URL."""
    if not files.is_remote(path):
        yield Local(path)
        return
    with files.opened(path) as file:
        yield Ranges(file, path)
