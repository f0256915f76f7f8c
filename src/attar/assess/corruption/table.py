"""Scores of a posterior on corrupted images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from pydantic.dataclasses import dataclass
from torch import Tensor

from attar.assess.corruption.family import CHUNK, CORRUPTIONS, corrupt
from attar.assess.score import evaluate
from attar.core.errors import AttarError
from attar.data import Data
from attar.infer.contract import Posterior

ROUNDING = 0.01  #: tolerance outside [0, 1] for pixels after inverting the scaling


@dataclass(frozen=True)
class Corrupted:
    """Scores under one corruption."""

    name: str
    severity: int
    accuracy: float
    nll: float
    n: int  #: images


def corruption_table(
    posterior: Posterior,
    data: Data,
    *,
    names: Sequence[str] | None = None,
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    seed: int = 0,
    limit: int | None = None,
) -> list[Corrupted]:
    """Accuracy and NLL under every corruption, applied to unscaled pixels.

    Args:
        posterior: The posterior; corrupted images are scaled as it expects.
        data: Images with their labels.
        names: Corruptions; by default all that apply, so no ``saturate`` for gray images.
        severities: From 1 to 5.
        seed: Random seed of every corruption and severity.
        limit: Images to use at most, drawn at random.
    """
    gen = torch.Generator().manual_seed(seed)
    data = data if limit is None else data.sample(limit, gen)
    if names is None:
        names = [name for name, each in CORRUPTIONS.items() if each.gray or data.shape[0] != 1]
    return [_row(posterior, data, name, severity, seed) for name in names for severity in severities]


def pixels(data: Data) -> Tensor:
    """The examples without scaling, in [0, 1]."""
    x = data.spec.stored(data.x)
    if x.ndim != 4 or not (float(x.min()) >= -ROUNDING and float(x.max()) <= 1 + ROUNDING):
        raise AttarError(
            f"Robustness is measured on images with pixels in [0, 1], got {tuple(x.shape[1:])} from "
            f"{float(x.min()):.3g} to {float(x.max()):.3g}: give images as uint8, or as numbers in [0, 1]."
        )
    return x.clamp(0, 1)


def _row(posterior: Posterior, data: Data, name: str, severity: int, seed: int) -> Corrupted:
    gen, scaling = torch.Generator().manual_seed(seed), posterior.spec.transform
    parts = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    x = torch.cat([scaling.apply(corrupt(pixels(part), name, severity, gen)) for part in parts])
    scores = evaluate(posterior, replace(data, x=x, spec=replace(data.spec, transform=scaling)))
    return Corrupted(name, severity, scores.accuracy, scores.nll, len(data))
