"""Examples that were made elsewhere: arrays, and what the arrays do not say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attar.core.errors import AttarError, unknown
from attar.core.files import read_tensors
from attar.data.data import Data
from attar.data.formats.memory import to_numpy
from attar.data.formats.npz import read_arrays
from attar.data.mapped import floats, open_array
from attar.data.spec import Image, Tokens
from attar.data.split import Split
from attar.data.transform import SCALINGS

#: What rows of numbers mean as labels, by name. Whole numbers are classes and need no convention.
CONVENTIONS = {
    "probabilities": "rows of class probabilities",
    "targets": "regression targets, such as one-hot rows",
    "centred": "regression targets minus 1/classes",
}
REGRESSED = ("targets", "centred")
PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin")
OFF = 1e-3  #: how far the sum of a row of probabilities may lie from one


def arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """The named arrays of a .npz or .safetensors file, or the one of a .npy file; pickles are refused."""
    place = Path(path)
    if place.suffix in PICKLES:
        raise AttarError(f"{place} is a pickle, which could run any code: save its arrays with numpy.savez.")
    if not place.is_file():
        raise AttarError(f"There is no file {place}: check the path.")
    match place.suffix:
        case ".npz":
            return read_arrays(place)
        case ".npy":
            return {place.stem: open_array(place)}
        case ".safetensors":
            return {name: to_numpy(tensor) for name, tensor in read_tensors(place)[0].items()}
    raise AttarError(f"The format of {place} is not known: give arrays as .npz, .npy or .safetensors.")


def pick(found: Mapping[str, NDArray[Any]], name: str, where: str | Path) -> NDArray[Any]:
    """The array of this name, or an error that lists those there are."""
    if name not in found:
        raise AttarError(f"{where} has no array {name!r}: name one of {', '.join(sorted(found)) or 'none'}.")
    return found[name]


def examples(x: Any, y: Any, split: Split, *, scaling: str, convention: str | None = None, weights: Any = None) -> Data:
    """Arrays as examples of the data that they stand for; what contradicts their description is refused.

    Args:
        x: Examples, scaled as ``scaling`` says; channels may come last.
        y: Whole numbers, or rows of numbers.
        split: The data that they replace, loaded with the same scaling.
        scaling: ``standard``, ``zca`` or ``none``.
        convention: What rows of numbers mean, one of ``CONVENTIONS``.
        weights: One per example, if they differ.
    """
    if isinstance(split.spec.element, Tokens):
        raise AttarError("Texts cannot be imported as arrays, because words are not in them: give images or features.")
    inputs = _shaped(to_numpy(x), split)
    _check_scaling(inputs, scaling, isinstance(split.spec.element, Image))
    labels = _labels(to_numpy(y), split, convention)
    if len(labels) != len(inputs):
        raise AttarError(f"There are {len(inputs)} examples and {len(labels)} labels: give one label per example.")
    own = None if weights is None else torch.from_numpy(to_numpy(weights).astype(np.float32))
    data = Data(floats(inputs), labels, None, split.spec)
    require_usable(data)
    if own is not None and (len(own) != len(data) or not are_weights(own)):
        raise AttarError("Weights must be one non-negative number per example, and not all zero: give others.")
    return Data(data.x, data.y, own, split.spec)


def require_usable(data: Data) -> None:
    """Raise ``AttarError`` if examples or labels are not finite."""
    for what, tensor in (("examples", data.x), ("labels", data.y)):
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise AttarError(f"The {what} hold NaN or Inf: give finite numbers.")


def are_weights(weights: Tensor) -> bool:
    """Whether these are weights of examples: one non-negative number each, and not all zero."""
    finite = weights.is_floating_point() and bool(torch.isfinite(weights).all())
    return weights.ndim == 1 and finite and bool((weights >= 0).all() & (weights.sum() > 0))


def _shaped(x: NDArray[Any], split: Split) -> NDArray[Any]:
    """The examples as (n, channels, height, width) or (n, features)."""
    if x.dtype.kind not in "buif" or len(x.shape) < 2 or not len(x):
        raise AttarError(f"Examples of type {x.dtype} and shape {x.shape} cannot be used: give (n, ...) numbers.")
    wanted = split.shape
    if x.shape[1:] == wanted:
        return x
    if len(wanted) == 3 and wanted[0] == 1 and x.shape[1:] == wanted[1:]:
        return x[:, None]
    if len(wanted) == 3 and x.shape[1:] == (*wanted[1:], wanted[0]):
        return np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    raise AttarError(
        f"The examples have shape {x.shape[1:]}, and those of {split.spec.name} {wanted}: reshape them, or name the "
        "data that they stand for."
    )


def _check_scaling(x: NDArray[Any], scaling: str, image: bool) -> None:
    """Refuse values that cannot be scaled as they are said to be; tables may have any."""
    if scaling not in SCALINGS:
        raise unknown("scaling", scaling, SCALINGS)
    low, high = float(x.min()), float(x.max())
    if image and scaling == "none" and x.dtype != np.uint8 and not -1 <= low <= high <= 2:
        raise AttarError(
            f"Values from {low:.3g} to {high:.3g} are not pixels between 0 and 1: state the scaling that they have "
            "(standard or zca), or give pixels."
        )
    if image and scaling != "none" and low >= 0:
        raise AttarError(
            f"Values from {low:.3g} to {high:.3g} look like pixels, and not like images scaled by {scaling}: state the "
            "scaling none, or give the scaled images."
        )


def _labels(y: NDArray[Any], split: Split, convention: str | None) -> Tensor:
    classes = split.classes
    if convention is not None and convention not in CONVENTIONS:
        raise unknown("label convention", convention, CONVENTIONS)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 1:
        return _hard(y, classes, convention)
    if y.ndim != 2 or y.shape[1] != classes or y.dtype.kind not in "buif":
        raise AttarError(
            f"The labels have shape {y.shape}, and {split.spec.name} has {classes} classes: give one whole number or "
            f"{classes} numbers per example."
        )
    rows = torch.from_numpy(np.array(y, dtype=np.float32))
    sums = rows.sum(1)
    ones, zeros = bool((sums - 1).abs().max() < OFF), bool(sums.abs().max() < OFF)
    if convention is None:
        raise AttarError(f"The labels are rows of numbers: {asked('convention')}{_hint(ones, zeros)}.")
    if convention == "probabilities" and not (ones and bool((rows >= -OFF).all())):
        raise AttarError("These rows are not probabilities, which sum to one: state the convention targets or centred.")
    if (convention == "centred" and ones) or (convention == "targets" and zeros):
        other = "targets" if ones else "centred"
        raise AttarError(f"The rows sum to {1 if ones else 0}, so they are not {convention}: state {other}.")
    return rows + 1 / classes if convention == "centred" else rows


def _hard(y: NDArray[Any], classes: int, convention: str | None) -> Tensor:
    if y.dtype.kind not in "buif" or not (np.isfinite(y) & (y == np.round(y))).all():
        raise AttarError("The labels are neither whole numbers nor rows of numbers: give the class of every example.")
    if convention is not None:
        raise AttarError(f"The labels are whole numbers, and the convention {convention} is for rows: leave it out.")
    if y.size and not 0 <= y.min() <= y.max() < classes:
        raise AttarError(
            f"The labels go from {y.min():g} to {y.max():g}, and there are {classes} classes: number them from 0."
        )
    return torch.from_numpy(y.astype(np.int64))


def asked(what: str) -> str:
    """The request for one thing that arrays do not say."""
    return {
        "data": "the data that it stands for (data, such as cifar10)",
        "scaling": f"how its examples are scaled (scaling: {', '.join(SCALINGS)})",
        "convention": "what its labels mean (convention: "
        + ", ".join(f"{name} for {about}" for name, about in CONVENTIONS.items())
        + ")",
        "training": "how to train on it (training, such as its authors' steps, optimiser, learning rate and loss)",
    }[what]


def _hint(ones: bool, zeros: bool) -> str:
    return "; rows that sum to zero are most likely centred" if zeros else ""
