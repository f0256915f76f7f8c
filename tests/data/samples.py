"""Small data sets in the real file formats."""

import gzip
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def pixels(*shape: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def labels(n: int, classes: int = 3) -> NDArray[np.int64]:
    return np.arange(n, dtype=np.int64) % classes


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(path: Path, array: NDArray[np.uint8]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = idx_bytes(array)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_mnist(folder: Path, n: int = 40, classes: int = 10, suffix: str = ".gz") -> None:
    for part, count in (("train", n), ("t10k", n // 2)):
        write_idx(folder / f"{part}-images-idx3-ubyte{suffix}", pixels(count, 5, 4, seed=count))
        write_idx(folder / f"{part}-labels-idx1-ubyte{suffix}", labels(count, classes).astype(np.uint8))
