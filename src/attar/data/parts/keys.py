"""Whether keys repeat, found in little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attar.core.errors import AttarError, require

Keys = Iterable[tuple[NDArray[np.int64], Any]]  #: row numbers with an Arrow array of int64 or large_string


def require_unique(read: Callable[[], Keys], rows: int, memory: int, where: str) -> None:
    """Raise an error that names a key which repeats.

    Hashes of 64 bits are compared, and then the keys whose hashes are equal. Where the hashes of all rows need more
    than ``memory`` bytes, the keys are read several times, and each time those of some hashes are compared.
    """
    times = max(1, -(-16 * rows // max(1, memory)))  # sorted in place, with room for a second copy
    for turn in range(times):
        hashes = [part[part % np.uint64(times) == turn] for part in (hashed(keys) for _, keys in read())]
        every = np.concatenate(hashes) if hashes else np.empty(0, np.uint64)
        del hashes
        every.sort()
        suspects = np.unique(every[1:][every[1:] == every[:-1]])
        if len(suspects):
            _compare(read(), suspects, where)


def hashed(keys: Any) -> NDArray[np.uint64]:
    """A hash of every key: a number itself, or for a text a sum of random numbers by place and character."""
    if require("pyarrow", "parquet").types.is_integer(keys.type):
        return np.asarray(keys).astype(np.uint64)
    compute = require("pyarrow.compute", "parquet")
    sizes = np.asarray(compute.binary_length(keys)).astype(np.int64)
    ends = sizes.cumsum()
    held = keys.buffers()[2]
    offsets = np.frombuffer(keys.buffers()[1], dtype=np.int64)[keys.offset : keys.offset + len(keys) + 1]
    letters = (
        np.frombuffer(held, dtype=np.uint8)[offsets[0] : offsets[-1]] if len(keys) and held else np.empty(0, np.uint8)
    )
    places = np.arange(len(letters)) - np.repeat(ends - sizes, sizes)
    random = np.random.default_rng(0).integers(0, 2**63, (2, 256), dtype=np.uint64)
    scale = (places.astype(np.uint64) + np.uint64(1)) * random[0][places % 256] | np.uint64(1)
    sums = np.concatenate([[np.uint64(0)], (random[1][letters] * scale).cumsum(dtype=np.uint64)])
    found: NDArray[np.uint64] = sums[ends] - sums[ends - sizes] + sizes.astype(np.uint64)
    return found


def _compare(keys: Keys, suspects: NDArray[np.uint64], where: str) -> None:
    """Raise if two keys with one of these hashes are equal."""
    seen: dict[object, int] = {}
    for numbers, some in keys:
        for place in np.flatnonzero(np.isin(hashed(some), suspects)):
            key = some[int(place)].as_py()
            if key in seen:
                raise AttarError(
                    f"Key {key!r} of {where} is in row {seen[key]} and in row {numbers[place]}: give a column "
                    "whose values do not repeat, or leave out the id."
                )
            seen[key] = int(numbers[place])
