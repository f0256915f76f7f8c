"""IDX, the format of MNIST and similar data sets: big-endian header, then bytes; plain or gzipped."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from attar.core import budget
from attar.core.errors import AttarError
from attar.core.files import require_read
from attar.data.formats.find import find, found
from attar.data.raw import RawSplit, join, pack

FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
KUZUSHIJI = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
BALANCED = tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt")  #: EMNIST balanced merges look-alike letters

IMAGES, LABELS = "images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"
DEFLATED = 1032  #: bytes that gzip unpacks from one, at most
UNSIGNED_BYTE = 8  #: the type code in the magic number


def read(folder: Path, classes: tuple[str, ...] | None = None) -> RawSplit:
    """``train-`` and, if present, ``t10k-`` images and labels of a folder."""
    train = _part(folder, "train-", classes)
    if not any(find(folder, f"t10k-{kind}") for kind in (IMAGES, LABELS)):
        return train
    return join(train, _part(folder, "t10k-", classes or train.classes), str(folder))


def read_emnist(folder: Path) -> RawSplit:
    """EMNIST balanced; its images are stored column by column and are transposed here."""
    train, test = (_part(folder, f"gzip/emnist-balanced-{part}-", BALANCED) for part in ("train", "test"))
    upright = [part.train._replace(x=np.ascontiguousarray(part.train.x.swapaxes(2, 3))) for part in (train, test)]
    return train._replace(train=upright[0], test=upright[1])


def _part(folder: Path, prefix: str, classes: tuple[str, ...] | None) -> RawSplit:
    images, labels = found(folder, prefix + IMAGES), found(folder, prefix + LABELS)
    return pack(parse(images, 3), parse(labels, 1), str(images), classes)


def parse(path: Path, ndim: int) -> NDArray[Any]:
    """The unsigned bytes of one file with ``ndim`` dimensions; a file that is too short or too long is refused."""
    opener = gzip.open if path.suffix == ".gz" else Path.open
    try:
        with opener(path, "rb") as file:
            header = file.read(4 + 4 * ndim)
            if header[:4] != bytes((0, 0, UNSIGNED_BYTE, ndim)):
                raise AttarError(
                    f"{path} starts with {header[:4].hex() or 'nothing'}, not with the magic number of an IDX file of "
                    f"bytes in {ndim} dimensions: download it again."
                )
            if len(header) < 4 + 4 * ndim:
                raise AttarError(f"{path} ends within its header: it is truncated, so download it again.")
            shape = struct.unpack(f">{ndim}I", header[4:])
            held = path.stat().st_size * (DEFLATED if path.suffix == ".gz" else 1)
            budget.claim(min(math.prod(shape), held) * (1 if ndim > 1 else 8), str(path))  # labels become int64
            body = _at_most(cast(BinaryIO, file), math.prod(shape) + 1)
    except (OSError, EOFError, zlib.error) as error:
        require_read(path, error)
        raise AttarError(f"{path} cannot be read ({error}): it is damaged, so download it again.") from error
    if len(body) != math.prod(shape):
        fault = "is truncated" if len(body) < math.prod(shape) else "has extra bytes"
        raise AttarError(f"{path} {fault} (its header says {shape}): download it again.")
    return np.frombuffer(body, dtype=np.uint8).reshape(shape)


def _at_most(file: BinaryIO, size: int) -> bytearray:
    """Read in pieces: a damaged header may announce more than fits into memory."""
    body = bytearray()
    while len(body) < size and (piece := file.read(min(1 << 20, size - len(body)))):
        body += piece
    return body
