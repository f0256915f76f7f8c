"""Examples as images: tiles, contact sheets and heat strips."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from attar.core.errors import AttarError
from attar.data import spec
from attar.data.spec import Element

TILE = 40  #: pixels that a small example is enlarged to
GAP = 2
INK, PAPER = (22, 25, 29), (255, 255, 255)


def is_image(element: Element) -> bool:
    """Whether examples are gray or colour images."""
    return isinstance(element, spec.Image) and drawable(element.shape)


def drawable(shape: Sequence[int]) -> bool:
    """Whether pixels of this shape can be drawn: (1 or 3, height, width)."""
    return len(shape) == 3 and shape[0] in (1, 3)


def tile(pixels: Tensor, scale: int) -> Image.Image:
    """One example ``(1 or 3, h, w)`` in [0, 1] (values outside are clipped), enlarged without smoothing."""
    if not drawable(pixels.shape):
        raise AttarError(f"An image needs the shape (1 or 3, height, width), got {tuple(pixels.shape)}.")
    bytes_ = (pixels.detach().cpu().clamp(0, 1) * 255).round().to(torch.uint8)
    array = bytes_[0] if len(bytes_) == 1 else bytes_.permute(1, 2, 0)
    image = Image.fromarray(array.contiguous().numpy())
    return image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)


def zoom(shape: Sequence[int]) -> int:
    """The whole factor that brings an image nearest to the size of a tile."""
    return max(1, round(TILE / max(shape[1:])))


def strip(pixels: Tensor, columns: int = 10, scale: int | None = None) -> Image.Image:
    """Examples ``(n, c, h, w)`` in lines of ``columns``, with transparent gaps."""
    tiles = [tile(x, scale or zoom(x.shape)) for x in pixels]
    width, height = tiles[0].width + GAP, tiles[0].height + GAP
    across = min(columns, len(tiles))
    sheet = Image.new("RGBA", (across * width - GAP, -(-len(tiles) // columns) * height - GAP), (0, 0, 0, 0))
    for i, picture in enumerate(tiles):
        sheet.paste(picture, (i % columns * width, i // columns * height))
    return sheet


def contact_sheet(data_pixels: Tensor, labels: Tensor, classes: Sequence[str], scale: int | None = None) -> Image.Image:
    """All examples ``(n, c, h, w)``, one named row per class that has any."""
    found = [(name, data_pixels[labels == c]) for c, name in enumerate(classes)]
    strips = [(name, strip(x, columns=len(x), scale=scale)) for name, x in found if len(x)]
    if not strips:
        raise AttarError("There are no examples to draw: pass at least one, with its label.")
    font, margin = ImageFont.load_default(14), 8
    left = margin + max(round(font.getlength(name)) for name, _ in strips) + 10
    width = left + max(row.width for _, row in strips) + margin
    line = max(strips[0][1].height, 18) + 4
    sheet = Image.new("RGB", (width, line * len(strips) + 2 * margin - 4), PAPER)
    draw = ImageDraw.Draw(sheet)
    for i, (name, row) in enumerate(strips):
        top = margin + i * line
        draw.text((left - 10, top + (line - 4) / 2), name, fill=INK, font=font, anchor="rm")
        sheet.paste(row, (left, top), row)
    return sheet


def heat_strip(values: Tensor) -> Image.Image:
    """Standardised features ``(n, d)``, one line per example: blue is below the mean, orange above, clipped at ±2."""
    share = (values.detach().cpu().clamp(-2, 2) / 2)[..., None]
    low, high = torch.tensor([33.0, 102.0, 172.0]), torch.tensor([230.0, 110.0, 20.0])
    white = torch.full((3,), 247.0)
    colours = torch.where(share < 0, white + share.abs() * (low - white), white + share.abs() * (high - white))
    image = Image.fromarray(colours.round().to(torch.uint8).numpy())
    across = max(1, min(24, 360 // image.width))
    return image.resize((image.width * across, image.height * 10), Image.Resampling.NEAREST)


def standardise(x: Tensor) -> Tensor:
    """Columns of the flattened examples with zero mean and unit deviation (constant ones stay zero)."""
    flat = x.flatten(1).double()
    return (flat - flat.mean(0)) / flat.std(0, correction=0).clamp_min(1e-12)


def data_uri(image: Image.Image) -> str:
    """The image as an inline PNG."""
    buffer = BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
