"""SVHN in its cropped form: MATLAB files of 32×32 house-number digits."""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path

import numpy as np

from attar.core import budget
from attar.core.errors import AttarError, require
from attar.data.formats.digits import DIGITS
from attar.data.formats.find import find, found
from attar.data.raw import RawSplit, join, pack

HEADER = 128  #: bytes of a MATLAB file before its first part
COMPRESSED = 15  #: the type of a compressed part
CHUNK = 1 << 20


def read(folder: Path) -> RawSplit:
    """``train_32x32.mat`` and, if present, ``test_32x32.mat``."""
    train = _part(found(folder, "train_32x32.mat"))
    test = find(folder, "test_32x32.mat")
    return train if test is None else join(train, _part(test), str(folder))


def _part(path: Path) -> RawSplit:
    io = require("scipy.io", "mat")
    try:
        _require_modest(path)
        for name, shape, _ in io.whosmat(path):
            if name in ("X", "y"):
                budget.claim(math.prod(shape) * (2 if name == "X" else 16), f"{name} of {path}")
        content = io.loadmat(path, variable_names=("X", "y"))
        x, y = content["X"], content["y"]
    except AttarError:
        raise
    except KeyError as error:
        raise AttarError(f"{path} holds no {error}: download SVHN's cropped digits, format 2, again.") from error
    except Exception as error:  # a damaged file makes the package fail in any way
        raise AttarError(f"{path} is not a complete MATLAB file ({error}): download it again.") from error
    whole = y.dtype.kind in "buif" and y.size > 0 and bool(((y >= 1) & (y <= 10)).all())
    if x.ndim != 4 or x.dtype != np.uint8 or not whole:
        told = f"{y.min()}..{y.max()}" if y.dtype.kind in "buif" and y.size else f"of type {y.dtype}"
        raise AttarError(
            f"{path} holds {x.dtype} images of shape {x.shape} and labels {told}, where SVHN has bytes (32, 32, 3, n) "
            "and labels 1..10: download it again."
        )
    upright = np.ascontiguousarray(x.transpose(3, 2, 0, 1))
    return pack(upright, y.astype(np.int64).ravel() % 10, str(path), DIGITS)  # SVHN labels the digit 0 as 10


def _require_modest(path: Path) -> None:
    """Unpack every compressed part, and keep nothing of it: the package would unpack any number of bytes."""
    with path.open("rb") as file:
        file.seek(HEADER)
        while len(tag := file.read(8)) == 8:
            kind, left = struct.unpack("<II", tag)
            if kind != COMPRESSED:
                file.seek(left, 1)
                continue
            inflate, total = zlib.decompressobj(), 0
            while left and (piece := file.read(min(left, CHUNK))):
                left -= len(piece)
                while piece:
                    total += len(inflate.decompress(piece, CHUNK))
                    budget.claim(0, f"A part of {path}", passing=total)
                    piece = inflate.unconsumed_tail
