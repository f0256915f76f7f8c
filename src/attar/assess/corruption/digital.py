"""Digital corruptions: contrast, saturation, compression, pixelation, elastic deformation."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from attar.assess.corruption.blur import enlargement, smooth
from attar.assess.corruption.dice import Dice


def contrast(x: Tensor, dice: Dice, by: float) -> Tensor:
    r""":math:`\mu + c (x - \mu)` with the mean :math:`\mu` of every channel."""
    mean = x.mean((2, 3), keepdim=True)
    return mean + by * (x - mean)


def saturate(x: Tensor, dice: Dice, by: float, plus: float) -> Tensor:
    """Scale and shift the saturation of HSV; hue and value stay, and a gray pixel counts as red."""
    value, least = x.amax(1, keepdim=True), x.amin(1, keepdim=True)
    spread = value - least
    red = x.new_tensor([0.0, 1.0, 1.0]).view(1, 3, 1, 1)
    tiny = torch.finfo(x.dtype).tiny
    away = torch.where(
        spread > 0, (value - x) / spread.clamp_min(tiny), red
    )  # 0 in the strongest channel, 1 in the weakest
    saturation = (by * spread / value.clamp_min(tiny) + plus).clamp(0, 1)
    return value * (1 - saturation * away)


def jpeg_compression(x: Tensor, dice: Dice, quality: int) -> Tensor:
    """Write every image as JPEG and read it again."""
    pixels = (255 * x.clamp(0, 1)).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    read = [_jpeg(image.squeeze(2) if image.shape[2] == 1 else image, quality) for image in pixels]
    return torch.from_numpy(np.stack(read)).view(pixels.shape).permute(0, 3, 1, 2).to(x) / 255


def pixelate(x: Tensor, dice: Dice, share: float) -> Tensor:
    """Average blocks of pixels so that ``share`` of the rows and columns are left, then repeat them."""
    rows, columns = (_blocks(size, int(size * share)).to(x) for size in x.shape[2:])
    return rows @ x @ columns.T


def elastic_transform(x: Tensor, dice: Dice, strength: float, sigma: float, jitter: float) -> Tensor:
    """A random affine map, then small random shifts that vary smoothly; lengths are shares of the shorter side.

    On images above 32 pixels the field of shifts is drawn for 32 and enlarged, so that the deformation is the same.
    """
    scale = enlargement(x)
    h, w = x.shape[2:]
    coarse = (round(h / scale), round(w / scale))
    rows, columns = (t.to(x) for t in torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"))
    x = _sample(x, *_affine(rows, columns, jitter * min(h, w), dice), corners=True)
    shifts = smooth(dice.uniform(-1, 1, 2, *coarse), sigma * min(coarse), truncate=3, mirror=True)
    shifts = F.interpolate(strength * min(h, w) * shifts, (h, w), mode="bilinear", align_corners=False)
    return _sample(x, rows + shifts[:, 0], columns + shifts[:, 1], corners=False)


def _affine(rows: Tensor, columns: Tensor, jitter: float, dice: Dice) -> tuple[Tensor, Tensor]:
    """The source of every pixel when three points around the centre move by up to ``jitter`` along each axis."""
    h, w = rows.shape
    reach = min(h, w) // 3
    corners = rows.new_tensor([[1, 1], [1, -1], [-1, -1]]) * reach + rows.new_tensor([h // 2, w // 2])
    moved = corners + dice.uniform(-jitter, jitter, 3, 2)
    ones = torch.ones_like(moved[..., :1])
    back = torch.linalg.solve(torch.cat([moved, ones], 2), corners.expand_as(moved))  # (n, 3, 2)
    pixels = torch.stack([rows, columns, torch.ones_like(rows)], 2)
    source = pixels.view(1, -1, 3) @ back
    return source[..., 0].view(-1, h, w), source[..., 1].view(-1, h, w)


def _sample(x: Tensor, rows: Tensor, columns: Tensor, corners: bool) -> Tensor:
    """Linear interpolation at these positions; outside, the image is mirrored at its border pixels or at its edge."""
    h, w = x.shape[2:]
    if corners:
        grid = torch.stack([2 * columns / (w - 1) - 1, 2 * rows / (h - 1) - 1], 3)
    else:
        grid = torch.stack([(2 * columns + 1) / w - 1, (2 * rows + 1) / h - 1], 3)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=corners)


def _blocks(size: int, blocks: int) -> Tensor:
    """Mean over blocks and back along one axis, as a ``(size, size)`` matrix."""
    block = ((torch.arange(size) + 0.5) * blocks / size).long()  # the block that contains a pixel's centre
    shared = (block[:, None] == torch.arange(blocks)).double()
    return shared @ (shared / shared.sum(0)).T


def _jpeg(pixels: np.ndarray, quality: int) -> np.ndarray:
    file = BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file, formats=["JPEG"]))
