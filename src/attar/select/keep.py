"""The cache, the random streams and the checks of views."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from contextlib import suppress
from math import sqrt
from pathlib import Path

import torch
from torch import Generator, Tensor

from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import read_tensors, set_aside, write_tensors
from attar.core.lock import in_turn
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


class Kept:
    """Tensors by name, in a file that other processes use too; without a file, nothing is kept.

    Args:
        path: The file, which need not be there.
        device: Where the tensors are wanted.
    """

    def __init__(self, path: Path | None, device: torch.device) -> None:
        self._path, self._device = path, device
        self._found: dict[str, Tensor] = {}

    def once(self, name: str, compute: Callable[[], Tensor]) -> Tensor:
        """The tensor of this name; if there is none it is computed, by one process while others wait for it.

        A file that is damaged, or of something else, is kept under another name.
        """
        if self._path is None:
            return compute()
        with suppress(DamagedFile):  # the process that replaces it says so
            self._look(name)
        if name not in self._found:
            with in_turn(self._path):
                try:
                    self._look(name)
                except DamagedFile as damaged:
                    set_aside(damaged, "it is computed again")
                if name not in self._found:
                    self._found[name] = compute()
                    write_tensors(self._path, self._found, {"format": FORMAT})
        return self._found[name]

    def _look(self, name: str) -> None:
        """Read the file, unless the tensor is here already."""
        if self._path is None or name in self._found:
            return
        try:
            tensors, header = read_tensors(self._path)
        except MissingFile:
            return
        if header.get("format") != FORMAT:
            problem = "is not a view of this library"
            raise DamagedFile(self._path, problem, "move it away, or choose another cache folder.")
        self._found |= {key: tensor.to(self._device) for key, tensor in tensors.items()}


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
    """Warn if most picks are misclassified, more often than as many random examples by three standard errors."""
    wrong = logits.argmax(1) != labels
    share, usual = (float(some.float().mean()) for some in (wrong[picks], wrong))
    error = sqrt(usual * (1 - usual) / max(1, len(picks)))  # of the share of as many random examples
    if share > max(0.5, usual + 3 * error):
        warnings.warn(
            f"The scoring network misclassifies {share:.0%} of the picks, and {usual:.0%} of all examples, so most "
            "picks are unusual or mislabelled: choose herding or lcmat-s, a smaller fit where the method has one, or "
            "fewer training steps (--train-steps).",
            SelectionWarning,
            stacklevel=2,
        )
