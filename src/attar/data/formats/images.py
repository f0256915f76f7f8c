"""Pillow images as arrays of one size and one number of channels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn.functional import interpolate

from attar.core import budget
from attar.core.errors import AttarError

#: The only formats that Pillow may decode: others need programs or libraries of their own (EPS starts Ghostscript).
FORMATS = ("PNG", "JPEG")
MODES = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB", "CMYK": "RGB"}
CHUNK = 256  #: images resized at once
LARGEST, DIGITS = 4096, 6  #: pixels of a side that images are resized to, and its digits
DECODING = 8  #: bytes per pixel while an image is decoded and converted

_size: ContextVar[tuple[int, int] | None] = ContextVar("size", default=None)


def to_array(image: Image.Image, name: str) -> NDArray[np.uint8]:
    """Pixels ``(1, h, w)`` of a gray image or ``(3, h, w)`` of one in colour; transparency is dropped."""
    if image.mode not in MODES:
        raise AttarError(f"{name} is an image of mode {image.mode}: convert it to 8-bit gray or RGB.")
    mode = MODES[image.mode]
    pixels = image.width * image.height
    kept = len(mode) * pixels if _size.get() is None else 0
    budget.claim(kept, name, passing=DECODING * pixels)
    array = np.asarray(image.convert(mode), dtype=np.uint8)
    channels: NDArray[np.uint8] = resized(
        array[None, None] if array.ndim == 2 else array.transpose(2, 0, 1)[None], name
    )[0]
    return channels


def decode(file: Path | BinaryIO, name: str) -> NDArray[np.uint8]:
    """The pixels of a PNG or JPEG file, whatever it is called; ``name`` is for errors."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the budget decides
            with Image.open(file, formats=FORMATS) as image:
                return to_array(image, name)
    except AttarError:
        raise
    except Exception as error:  # a damaged file makes the package fail in any way
        reason = str(error).partition("\n")[0]
        raise AttarError(
            f"{name} is not a complete image in PNG or JPEG ({reason}): convert, replace or delete it."
        ) from error


def size_of(given: int | str | tuple[int, int] | None) -> tuple[int, int] | None:
    """Height and width from 32, "32", "32x48" or a pair."""
    if given is None:
        return None
    parts = given if isinstance(given, tuple) else str(given).lower().replace("×", "x").split("x")
    sides = [int(part) for part in parts if str(part).isascii() and str(part).isdigit() and len(str(part)) < DIGITS]
    if len(sides) != len(parts) or len(sides) not in (1, 2) or not all(1 <= side <= LARGEST for side in sides):
        raise AttarError(f"resize is a size in pixels such as 32 or 32x48 (height x width), got {given!r}.")
    return sides[0], sides[-1]


@contextmanager
def resizing(size: tuple[int, int] | None) -> Iterator[None]:
    """Images that are read inside are brought to this height and width."""
    token = _size.set(size)
    try:
        yield
    finally:
        _size.reset(token)


def resized(x: NDArray[Any], where: str) -> NDArray[Any]:
    """Images ``(n, c, h, w)`` in the size of ``resizing``, by bilinear interpolation with antialiasing."""
    size = _size.get()
    if size is None or x.shape[2:] == size:
        return x
    if x.ndim != 4:
        raise AttarError(f"{where} holds no images, so resize is not used: leave resize out.")
    budget.claim(len(x) * x.shape[1] * size[0] * size[1] * x.itemsize, where)
    out = np.empty((*x.shape[:2], *size), x.dtype)
    for start in range(0, len(x), CHUNK):
        part = torch.from_numpy(x[start : start + CHUNK].astype(np.float32))
        made = interpolate(part, size=size, mode="bilinear", antialias=True)
        out[start : start + CHUNK] = made.round().clamp(0, 255) if x.dtype == np.uint8 else made
    return out


def stack(images: Sequence[NDArray[np.uint8]], names: Sequence[str]) -> NDArray[Any]:
    """All images as ``(n, c, h, w)``: gray if all are gray, else in colour, of which a warning tells."""
    height, width = images[0].shape[1:]
    for image, name in zip(images, names, strict=True):
        if image.shape[1:] != (height, width):
            raise AttarError(
                f"{names[0]} has {width}×{height} pixels but {name} has {image.shape[2]}×{image.shape[1]}: "
                "bring all images to one size, such as with --resize 32."
            )
    channels = max(image.shape[0] for image in images)
    if gray := [name for image, name in zip(images, names, strict=True) if image.shape[0] < channels]:
        warnings.warn(
            f"{len(gray):,} of {len(images):,} images are gray, such as {gray[0]}: as others are in colour, "
            "they are repeated over the three channels.",
            stacklevel=2,
        )
    budget.claim(0, f"Stacking {len(images)} images", passing=len(images) * channels * height * width)
    out = np.empty((len(images), channels, height, width), dtype=np.uint8)
    for place, image in zip(out, images, strict=True):
        place[:] = image  # a gray image is repeated over the channels
    return out
