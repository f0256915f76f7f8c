"""Pillow images as arrays of one size and one number of channels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from attar.core.errors import AttarError

MODES = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB", "CMYK": "RGB"}


def to_array(image: Image.Image, name: str) -> NDArray[np.uint8]:
    """Pixels ``(1, h, w)`` of a gray image or ``(3, h, w)`` of one in colour; transparency is dropped."""
    if image.mode not in MODES:
        raise AttarError(f"{name} is an image of mode {image.mode}: convert it to 8-bit gray or RGB.")
    pixels = np.asarray(image.convert(MODES[image.mode]), dtype=np.uint8)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def decode(file: Path | BinaryIO, name: str) -> NDArray[np.uint8]:
    """The pixels of an image file; ``name`` is for errors."""
    try:
        with Image.open(file) as image:
            return to_array(image, name)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise AttarError(f"{name} is not a complete image ({error}): replace or delete it.") from error


def stack(images: Sequence[NDArray[np.uint8]], names: Sequence[str]) -> NDArray[Any]:
    """All images as ``(n, c, h, w)``: gray if all are gray, else in colour."""
    height, width = images[0].shape[1:]
    for image, name in zip(images, names, strict=True):
        if image.shape[1:] != (height, width):
            raise AttarError(
                f"{names[0]} has {width}×{height} pixels but {name} has {image.shape[2]}×{image.shape[1]}: "
                "resize all images to one size."
            )
    channels = max(image.shape[0] for image in images)
    out = np.empty((len(images), channels, height, width), dtype=np.uint8)
    for place, image in zip(out, images, strict=True):
        place[:] = image  # a gray image is repeated over the channels
    return out
