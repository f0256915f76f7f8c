"""Safetensors files of examples and labels."""

from __future__ import annotations

from pathlib import Path

from attar.data.formats.memory import keyed, to_numpy
from attar.data.raw import RawSplit
from attar.files import read_tensors


def read(path: Path) -> RawSplit:
    """The tensors ``x, y`` or ``x_train, y_train, x_test, y_test``."""
    tensors, _ = read_tensors(path)
    return keyed({name: to_numpy(tensor) for name, tensor in tensors.items()}, str(path))
