"""A data set that stays in its file: examples are read from disk only when they are used."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attar.core import budget
from attar.core.errors import AttarError
from attar.core.files import require_read
from attar.data.data import Data
from attar.data.raw import DAMAGED_ARRAY, MOST_CLASSES
from attar.data.spec import Spec
from attar.data.transform import Transform

CHUNK = 4096  #: examples read at once


class Mapped:
    """Examples of a ``.npy`` file and their labels, as a ``Dataset``; only what ``take`` returns is in memory.

    Args:
        examples: A file that ``numpy.save`` wrote: images ``(n, c, h, w)`` or features ``(n, d)``, as floats or as
            uint8 pixels.
        labels: The class of every example, whole numbers from 0, as an array, a tensor or a ``.npy`` file.
        classes: Names of the classes; by default their numbers.
        transform: Applied to examples when they are read, such as ``Standard.fit`` of some of them; by default none.
        name: Name of the data set; by default the file's.
    """

    def __init__(
        self,
        examples: str | Path,
        labels: str | Path | NDArray[Any] | Tensor,
        classes: Sequence[str] | None = None,
        *,
        transform: Transform | None = None,
        name: str | None = None,
    ) -> None:
        self._x = open_array(Path(examples))
        y = open_array(Path(labels)) if isinstance(labels, str | Path) else np.asarray(labels)
        if y.ndim != 1 or y.dtype.kind not in "iu" or len(y) != len(self._x) or not len(y) or y.min() < 0:
            raise AttarError(
                f"{examples} has {len(self._x)} examples: give one label per example, a whole number from 0."
            )
        budget.claim(16 * len(y), f"The labels of {examples}")  # with their row numbers
        self.labels = torch.from_numpy(y.astype(np.int64))
        count = int(self.labels.max()) + 1
        if count > MOST_CLASSES:
            raise AttarError(f"{examples} has a label {count - 1:,}: number the classes from 0 without gaps.")
        if classes is not None and len(classes) < count:
            raise AttarError(f"There are {count} classes but {len(classes)} names: name every class.")
        self.spec = Spec.of(self._x.shape[1:], classes or count, transform, name or Path(examples).stem)
        self.rows = torch.arange(len(y))
        self.weights: Tensor | None = None

    @property
    def device(self) -> torch.device:
        """Always the CPU."""
        return torch.device("cpu")

    def __len__(self) -> int:
        return len(self._x)

    def take(self, index: Tensor) -> Data:
        """The examples at these positions, read into memory."""
        return self._read(index.cpu().numpy())

    def chunks(self, size: int) -> Iterator[Data]:
        """All examples in order, ``size`` at a time."""
        for start in range(0, len(self), size):
            yield self._read(np.arange(start, min(start + size, len(self))))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all examples and labels, read in chunks."""
        digest = hashlib.blake2b(digest_size=16)
        for part in self.chunks(CHUNK):
            digest.update(part.fingerprint.encode())
        return digest.hexdigest()

    def _read(self, places: NDArray[np.int64]) -> Data:
        x = self.spec.transform.apply(floats(self._x[places]))
        index = torch.from_numpy(places)
        return Data(x, self.labels[index], spec=self.spec, rows=self.rows[index])

    def __repr__(self) -> str:
        kind = type(self.spec.element).__name__.lower()
        return (
            f"Mapped({len(self):,} examples of {self.spec.name!r}: {kind} {self.spec.element.shape}, "
            f"{len(self.spec.target)} classes)"
        )


def open_array(path: Path) -> NDArray[Any]:
    """A ``.npy`` file of numbers as a memory-mapped array."""
    if not path.is_file():
        raise AttarError(f"There is no file {path}: check the path.")
    try:
        array = np.lib.format.open_memmap(path, mode="c")  # which also refuses archives and pickles
    except DAMAGED_ARRAY as error:
        require_read(path, error)
        reason = str(error).partition("\n")[0]
        raise AttarError(f"{path} is not a complete .npy file ({reason}): write it with numpy.save.") from error
    if array.dtype.kind not in "fiu" or not array.ndim:
        raise AttarError(f"{path} does not hold an array of numbers: write one with numpy.save.")
    return array


def floats(x: NDArray[Any]) -> Tensor:
    """Numbers in float32, with uint8 pixels in [0, 1]."""
    values = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))
    return values / 255 if x.dtype == np.uint8 else values
