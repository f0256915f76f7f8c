"""The cache, the random streams and the checks of views."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path

import torch
from torch import Generator, Tensor

from attar.core.errors import AttarError, MissingFile
from attar.core.files import read_tensors, write_tensors
from attar.core.streams import reduction, seed_of

FORMAT = "attar-view-1"
ROWS = 256  # rows checked at once


class SelectionWarning(UserWarning):
    """A selection continues, but not as its method intends."""


def digest(*parts: Tensor | str) -> str:
    """A hash of every byte of tensors and texts."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, str):
            total.update(part.encode())
        else:
            total.update(f"{tuple(part.shape)}{part.dtype}".encode())
            total.update(part.detach().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def stream(gen: Generator, purpose: str = "") -> Generator:
    """A copy of ``gen``, or a generator for another purpose that depends only on its state."""
    if purpose:
        return reduction(int(digest(gen.get_state(), purpose)[:15], 16), gen.device)
    new = torch.Generator(gen.device)
    new.set_state(gen.get_state())
    return new


def streams(seed: int, device: torch.device) -> tuple[Generator, Generator]:
    """Two independent streams from one seed: the method's own, and the scoring network's."""
    return reduction(seed, device), reduction(seed_of("scoring", seed), device)


def store(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write what ``recall`` reads."""
    write_tensors(path, tensors, {"format": FORMAT})


def recall(path: Path, device: torch.device) -> dict[str, Tensor]:
    """What was stored there; empty if there is no file."""
    try:
        tensors, header = read_tensors(path)
    except MissingFile:
        return {}
    if header.get("format") != FORMAT:
        raise AttarError(f"{path} is not a view of this library: delete it, or choose another cache folder.")
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def finite(tensor: Tensor, what: str) -> Tensor:
    """The same tensor, or an error that names its first bad row."""
    for start, rows in zip(range(0, len(tensor), ROWS), tensor.split(ROWS), strict=True):
        ends = torch.stack(torch.aminmax(rows))  # NaN if any number is NaN; faster than checking each
        if not bool(torch.isfinite(ends).all()):
            place = start + int((~torch.isfinite(rows).flatten(1).all(1)).nonzero()[0])
            raise AttarError(f"The {what} of example {place} hold NaN or Inf: clean them or leave that example out.")
    return tensor


def warn_if_constant(features: Tensor) -> Tensor:
    """The same features, with a warning if they are equal for all examples."""
    if len(features) > 1 and all(bool((rows == features[0]).all()) for rows in features.split(ROWS)):
        warnings.warn(
            "Every example has the same features, so picks follow the order of the data: check the embeddings or "
            "train the scoring network for more steps.",
            SelectionWarning,
            stacklevel=2,
        )
    return features


def warn_if_misclassified(logits: Tensor, labels: Tensor, picks: Tensor) -> None:
    """Warn if most picks are misclassified, and more often than examples in general."""
    wrong = logits.argmax(1) != labels
    share, usual = (float(some.float().mean()) for some in (wrong[picks], wrong))
    if share > max(0.5, 1.5 * usual):
        warnings.warn(
            f"The scoring network misclassifies {share:.0%} of the picks, and {usual:.0%} of all examples, so most "
            "picks are unusual or mislabelled: choose herding or lcmat-s, a smaller fit where the method has one, or "
            "fewer training steps (--train-steps).",
            SelectionWarning,
            stacklevel=2,
        )
