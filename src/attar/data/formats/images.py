"""Pillow images as arrays of one size and one number of channels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from attar.core import budget
from attar.core.errors import AttarError

#: The only formats that Pillow may decode: others need programs or libraries of their own (EPS starts Ghostscript).
FORMATS = ("PNG", "JPEG")
MODES = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB", "CMYK": "RGB"}
DECODING = 8  #: bytes per pixel while an image is decoded and converted


def to_array(image: Image.Image, name: str) -> NDArray[np.uint8]:
    """Pixels ``(1, h, w)`` of a gray image or ``(3, h, w)`` of one in colour; transparency is dropped."""
    if image.mode not in MODES:
        raise AttarError(f"{name} is an image of mode {image.mode}: convert it to 8-bit gray or RGB.")
    mode = MODES[image.mode]
    pixels = image.width * image.height
    budget.claim(len(mode) * pixels, name, passing=DECODING * pixels)
    array = np.asarray(image.convert(mode), dtype=np.uint8)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def decode(file: Path | BinaryIO, name: str) -> NDArray[np.uint8]:
    """The pixels of a PNG or JPEG file, whatever it is called; ``name`` is for errors."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the budget decides
            with Image.open(file, formats=FORMATS) as image:
                return to_array(image, name)
    except AttarError:
        raise
    except (OSError, SyntaxError, ValueError, OverflowError, Image.DecompressionBombError) as error:
        reason = str(error).partition("\n")[0]
        raise AttarError(
            f"{name} is not a complete image in PNG or JPEG ({reason}): convert, replace or delete it."
        ) from error


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
    budget.claim(0, f"Stacking {len(images)} images", passing=len(images) * channels * height * width)
    out = np.empty((len(images), channels, height, width), dtype=np.uint8)
    for place, image in zip(out, images, strict=True):
        place[:] = image  # a gray image is repeated over the channels
    return out
