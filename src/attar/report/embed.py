"""What a page carries along: numbers, pictures and the script, in a form that a browser reads and nothing escapes."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from io import BytesIO
from typing import Any

import torch
from markupsafe import Markup
from PIL import Image
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from attar.core.text import visible

PIXELS = 2_000_000  #: of one sheet of thumbnails: about 300 KB
QUALITY = 55


def resource(name: str) -> str:
    """A file of this room as text."""
    return files("attar.report").joinpath(name).read_text(encoding="utf-8")


def script(*names: str) -> str:
    """These files of plain JavaScript as one strict script, for one ``<script>`` element."""
    return '"use strict";\n' + "\n".join(resource(name) for name in names)


def policy(code: str, connect: bool = False) -> str:
    """The content security policy of a page: this script and nothing else runs, and no other address is asked.

    Args:
        code: The page's script, exactly; empty for a page without one.
        connect: Whether the script may listen to the server that the page came from.
    """
    rules = ["default-src 'none'", "img-src data:", "style-src 'unsafe-inline'"]
    if code:
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        rules.append(f"script-src 'sha256-{digest}'")
    return "; ".join([*rules, *(["connect-src 'self'"] if connect else [])])


def as_json(value: Any) -> Markup:
    """JSON for the inside of a ``<script type="application/json">``: no text in it can end that element."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(plain.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def packed(numbers: Tensor) -> str:
    """Whole numbers from 0 to 65535 as base64 of little-endian 16-bit words."""
    words = numbers.flatten().long().numpy().astype("<u2")
    return base64.b64encode(words.tobytes()).decode()


def sheet(pixels: Tensor, most: float = PIXELS) -> dict[str, Any]:
    """Images ``(n, 1 or 3, h, w)`` in [0, 1] as one small WebP: its address, and the size and number of tiles a line.

    Images are shrunk until all fit into ``most`` pixels, never enlarged.
    """
    n, channels, height, width = pixels.shape
    shrink = min(1.0, (most / (n * height * width)) ** 0.5)
    high, wide = max(1, int(height * shrink)), max(1, int(width * shrink))
    across = max(1, round((n * high / wide) ** 0.5))
    lines = -(-n // across)
    board = torch.zeros(lines * across, channels, high, wide, dtype=torch.uint8)
    for start in range(0, n, 1024):
        small = adaptive_avg_pool2d(pixels[start : start + 1024].float().cpu().clamp(0, 1), (high, wide))
        board[start : start + len(small)] = (small * 255).round().to(torch.uint8)
    laid = board.reshape(lines, across, channels, high, wide).permute(0, 3, 1, 4, 2)
    array = laid.reshape(lines * high, across * wide, channels).expand(-1, -1, 3)
    buffer = BytesIO()
    Image.fromarray(array.contiguous().numpy()).save(buffer, "WEBP", quality=QUALITY, method=4)
    address = "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
    return {"uri": address, "width": wide, "height": high, "across": across}


def cut(words: Sequence[str], most: int = 160) -> list[str]:
    """Texts, each with at most this many characters, and without those that control how others are shown."""
    return [visible(text if len(text) <= most else text[: most - 1] + "…") for text in words]
