"""The corruptions of CIFAR-10-C with their published strengths.

Hendrycks & Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and Perturbations, ICLR 2019. The
constants are those of the 32x32 images. Results stay float, where the published sets round to 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from attar.assess.corruption import blur, digital, noise, spatter, weather
from attar.assess.corruption.dice import Dice, seeds
from attar.core.errors import AttarError, unknown

CHUNK = 256  #: images processed at once
LEAST = 8  #: smallest side in pixels


@dataclass(frozen=True)
class Corruption:
    """An operation and its constants at severities 1 to 5."""

    apply: Callable[..., Tensor]
    levels: tuple[tuple[float, ...], ...]
    gray: bool = True  #: whether it changes gray images

    def __call__(self, x: Tensor, severity: int, gen: Generator, chunk: int = CHUNK) -> Tensor:
        """Corrupt images ``(n, c, h, w)`` in [0, 1]; the result does not depend on ``chunk``."""
        constants = self.levels[severity - 1]
        work = x if x.dtype == torch.float64 else x.float()
        parts = [
            self.apply(part, Dice(part, seeds(len(part), gen)), *constants).clamp(0, 1) for part in work.split(chunk)
        ]
        return torch.cat(parts).to(x.dtype)


def _levels(*values: float) -> tuple[tuple[float, ...], ...]:
    return tuple((value,) for value in values)


CORRUPTIONS = {
    "gaussian_noise": Corruption(noise.gaussian_noise, _levels(0.04, 0.06, 0.08, 0.09, 0.10)),
    "shot_noise": Corruption(noise.shot_noise, _levels(500, 250, 100, 75, 50)),
    "impulse_noise": Corruption(noise.impulse_noise, _levels(0.01, 0.02, 0.03, 0.05, 0.07)),
    "speckle_noise": Corruption(noise.speckle_noise, _levels(0.06, 0.1, 0.12, 0.16, 0.2)),
    "gaussian_blur": Corruption(blur.gaussian_blur, _levels(0.4, 0.6, 0.7, 0.8, 1)),
    "defocus_blur": Corruption(blur.defocus_blur, ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))),
    "glass_blur": Corruption(blur.glass_blur, ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))),
    "motion_blur": Corruption(blur.motion_blur, ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))),
    "zoom_blur": Corruption(blur.zoom_blur, _levels(1.06, 1.11, 1.15, 1.2, 1.25)),
    "snow": Corruption(
        weather.snow,
        (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
    ),
    "frost": Corruption(weather.frost, ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))),
    "fog": Corruption(weather.fog, ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))),
    "brightness": Corruption(weather.brightness, _levels(0.05, 0.1, 0.15, 0.2, 0.3)),
    "contrast": Corruption(digital.contrast, _levels(0.75, 0.5, 0.4, 0.3, 0.15)),
    "elastic_transform": Corruption(
        digital.elastic_transform,
        ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    ),
    "pixelate": Corruption(digital.pixelate, _levels(0.95, 0.9, 0.85, 0.75, 0.65)),
    "jpeg_compression": Corruption(digital.jpeg_compression, _levels(80, 65, 58, 50, 40)),
    "saturate": Corruption(digital.saturate, ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)), gray=False),
    "spatter": Corruption(
        spatter.spatter,
        (
            (0.62, 0.1, 0.7, 0.7, 0.5, False),
            (0.65, 0.1, 0.8, 0.7, 0.5, False),
            (0.65, 0.3, 1, 0.69, 0.5, False),
            (0.65, 0.1, 0.7, 0.69, 0.6, True),
            (0.65, 0.1, 0.5, 0.68, 0.6, True),
        ),
    ),
}


def corrupt(x: Tensor, name: str, severity: int, gen: Generator, *, chunk: int = CHUNK) -> Tensor:
    """Images ``(n, c, h, w)`` in [0, 1], gray or RGB, under one corruption at severity 1 to 5; a new tensor."""
    if name not in CORRUPTIONS:
        raise unknown("corruption", name, CORRUPTIONS)
    if severity not in range(1, 6):
        raise AttarError(f"Severity must be from 1 to 5, got {severity}.")
    check_images(x)
    if x.shape[1] == 1 and not CORRUPTIONS[name].gray:
        raise AttarError(f"{name} changes colours, but these images are gray: leave it out.")
    return CORRUPTIONS[name](x, severity, gen, chunk)


def check_images(x: Tensor) -> None:
    """Raise an error unless ``x`` is a batch of gray or RGB images in [0, 1], 8x8 or larger."""
    if x.ndim != 4 or not len(x) or x.shape[1] not in (1, 3) or min(x.shape[2:]) < LEAST or not x.is_floating_point():
        raise AttarError(
            f"Corruptions need float images of shape (n, 1 or 3, height, width), {LEAST}x{LEAST} or larger, "
            f"got {x.dtype} {tuple(x.shape)}: give such images."
        )
    if not (float(x.min()) >= 0 and float(x.max()) <= 1):
        raise AttarError(
            f"Pixels must lie in [0, 1], got {float(x.min()):.3g} to {float(x.max()):.3g}: undo the scaling first."
        )
