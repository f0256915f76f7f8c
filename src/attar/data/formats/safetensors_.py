"""Safetensors files of examples and labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from torch import Tensor

from attar.core.errors import DamagedFile
from attar.core.files import read_tensors
from attar.data.formats.memory import keyed, to_numpy
from attar.data.raw import RawSplit, pack
from attar.data.spec import Spec, Tokens


def read(path: Path) -> RawSplit:
    """The tensors ``x, y`` or ``x_train, y_train, x_test, y_test``; a coreset's examples come back unscaled."""
    tensors, header = read_tensors(path)
    if "recipe" not in header or "spec" not in header:
        return keyed({name: to_numpy(tensor) for name, tensor in tensors.items()}, str(path))
    try:
        return _coreset(tensors, header["spec"], str(path))
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError) as error:
        reason = " ".join(str(error).split())
        raise DamagedFile(path, f"is a damaged coreset ({reason})", "make or copy it again.") from error


def _coreset(tensors: Mapping[str, Tensor], about: str, where: str) -> RawSplit:
    spec = Spec.unpack(tensors, about)
    x, y, element = spec.stored(tensors["x"]), tensors["y"], spec.element
    texts = [element.text(row) for row in x.tolist()] if isinstance(element, Tokens) else None
    return pack(
        to_numpy(x) if texts is None else np.array(texts),
        to_numpy(y.argmax(1) if y.ndim == 2 else y),
        where,
        spec.target.names,
    )
