"""Images in a terminal: every character shows two pixels, one above the other."""

from __future__ import annotations

from PIL import Image
from rich.color import Color
from rich.style import Style
from rich.text import Text

UPPER, LOWER = "▀", "▄"


def ansi(image: Image.Image) -> Text:
    """Half-block characters, one per column and two pixel rows; transparent pixels keep the terminal's colour."""
    pixels = image.convert("RGBA")
    lines = Text(no_wrap=True)
    for top in range(0, pixels.height, 2):
        for x in range(pixels.width):
            lines.append_text(_pair(_colour(pixels, x, top), _colour(pixels, x, top + 1)))
        lines.append("\n")
    return lines


def _pair(upper: Color | None, lower: Color | None) -> Text:
    if upper:
        return Text(UPPER, Style(color=upper, bgcolor=lower))
    return Text(LOWER, Style(color=lower)) if lower else Text(" ")


def _colour(image: Image.Image, x: int, y: int) -> Color | None:
    pixel = image.getpixel((x, y)) if y < image.height else None
    if not isinstance(pixel, tuple) or not pixel[3]:
        return None
    return Color.from_rgb(*pixel[:3])
