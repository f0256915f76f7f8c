"""Safetensors files of examples and labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attar.core.files import read_tensors
from attar.data.formats.memory import keyed, to_numpy
from attar.data.raw import RawSplit, pack
from attar.data.spec import Spec, Tokens


def read(path: Path) -> RawSplit:
    """The tensors ``x, y`` or ``x_train, y_train, x_test, y_test``; a coreset's examples come back unscaled."""
    tensors, header = read_tensors(path)
    if "recipe" in header and "spec" in header:
        spec = Spec.unpack(tensors, header["spec"])
        x, y = spec.stored(tensors["x"]), tensors["y"]
        element = spec.element
        texts = [element.text(row) for row in x.tolist()] if isinstance(element, Tokens) else None
        return pack(
            to_numpy(x) if texts is None else np.array(texts),
            to_numpy(y.argmax(1) if y.ndim == 2 else y),
            str(path),
            spec.target.names,
        )
    return keyed({name: to_numpy(tensor) for name, tensor in tensors.items()}, str(path))
