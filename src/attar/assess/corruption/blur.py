"""Blur, and the filters that weather and digital corruptions use.

Lengths are the published ones, in pixels of a 32x32 image. On larger images they grow with the shorter side, so that
the effect is the same; on smaller images they stay, because a blur narrower than a pixel has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import torch
import torch.nn.functional as F
from torch import Tensor

from attar.assess.corruption.dice import Dice

SIDE = 32  #: of the images that the constants were published for


def gaussian_blur(x: Tensor, dice: Dice, sigma: float) -> Tensor:
    """A Gaussian filter, cut at four deviations, that repeats the border."""
    return smooth(x, sigma * enlargement(x))


def defocus_blur(x: Tensor, dice: Dice, radius: float, alias: float) -> Tensor:
    """A disk filter whose rim is softened by a Gaussian of deviation ``alias``."""
    scale = enlargement(x)
    soft = round(scale)
    reach = ceil(radius * scale) + soft
    axis = torch.arange(-reach, reach + 1, dtype=x.dtype, device=x.device)
    disk = (axis[:, None].square() + axis.square() <= (radius * scale) ** 2).to(x)
    rim = bell(torch.arange(-soft, soft + 1, device=x.device), alias * scale).to(x)
    kernel = F.conv2d((disk / disk.sum())[None, None], rim[:, None].mul(rim)[None, None], padding=soft)
    return _each_channel(x, lambda flat: F.conv2d(F.pad(flat, [reach] * 4, "reflect"), kernel))


def glass_blur(x: Tensor, dice: Dice, sigma: float, times: int) -> Tensor:
    """Between two Gaussian filters every pixel becomes a copy of itself or of a neighbour above or to the left.

    The published loop, meant to swap pixels in place, amounts to this. It leaves out the first rows and columns.
    """
    scale = enlargement(x)
    reach, (h, w) = round(scale), x.shape[2:]
    x = smooth(x, sigma * scale)
    for _ in range(times):
        up, left = (dice.uniform(0, reach + 1, h, w).long() for _ in range(2))
        rows, columns = torch.arange(h, device=x.device)[:, None], torch.arange(w, device=x.device)
        inner = (rows > reach) & (columns > reach)
        x = _pick(x, rows - up * inner, columns - left * inner)
    return smooth(x, sigma * scale)


def motion_blur(x: Tensor, dice: Dice, radius: float, sigma: float) -> Tensor:
    """A one-sided Gaussian along a line that is at most 45 degrees off the horizontal."""
    scale = enlargement(x)
    return streak(x, round(radius * scale), sigma * scale, dice.uniform(-45, 45))


def zoom_blur(x: Tensor, dice: Dice, most: float) -> Tensor:
    """The mean of the image and of its enlargements by 1, 1.01, ... up to ``most``."""
    zooms = [1 + k / 100 for k in range(round(100 * (most - 1)) + 1)]
    total = x.clone()
    for by in zooms:
        total += zoom(x, by)
    return total / (len(zooms) + 1)


def enlargement(x: Tensor) -> float:
    """The size relative to the published images; 1 for smaller ones."""
    return max(1.0, min(x.shape[2:]) / SIDE)


def smooth(x: Tensor, sigma: float, truncate: float = 4.0, mirror: bool = False) -> Tensor:
    """A Gaussian filter over the last two axes; outside the image its border is repeated, or the image mirrored."""
    rows, columns = (_gaussian(size, sigma, truncate, mirror).to(x) for size in x.shape[-2:])
    return rows @ x @ columns.T


def streak(x: Tensor, radius: int, sigma: float, angle: Tensor) -> Tensor:
    """Smear every image along its own angle, ``(n,)`` in degrees; outside the image its border is repeated."""
    h, w = x.shape[2:]
    along = torch.arange(2 * radius + 1, device=x.device)
    turned = torch.deg2rad(angle)[:, None]
    down, right = ((along * part - 0.5).ceil().long() for part in (turned.sin(), turned.cos()))
    rows, columns = torch.arange(h, device=x.device)[:, None], torch.arange(w, device=x.device)
    total = torch.zeros_like(x)
    for k, weight in enumerate(bell(along, sigma).tolist()):
        total += weight * _pick(x, rows + down[:, k, None, None], columns + right[:, k, None, None])
    return total


def zoom(x: Tensor, by: float) -> Tensor:
    """The middle of the image, enlarged to its size by linear interpolation."""
    rows, columns = (_zooming(size, by).to(x) for size in x.shape[-2:])
    return rows @ x @ columns.T


def bell(at: Tensor, sigma: float) -> Tensor:
    """Weights of a Gaussian at these positions, with sum 1."""
    return torch.softmax(-at.double().square() / (2 * sigma**2), 0)


def _gaussian(size: int, sigma: float, truncate: float, mirror: bool) -> Tensor:
    """The filter along one axis as a ``(size, size)`` matrix."""
    reach = int(truncate * sigma + 0.5)
    offsets = torch.arange(-reach, reach + 1)
    weights = bell(offsets, sigma) if reach else torch.ones(1).double()
    places = torch.arange(size)[:, None] + offsets
    if mirror:  # the edge itself is the mirror, so that the period is twice the size
        places = places % (2 * size)
        places = torch.minimum(places, 2 * size - 1 - places)
    return torch.zeros(size, size).double().scatter_add_(1, places.clamp(0, size - 1), weights.expand(size, -1))


def _zooming(size: int, by: float) -> Tensor:
    """Crop, enlarge and trim along one axis as a ``(size, size)`` matrix."""
    kept = ceil(size / by)
    grown = round(kept * by)
    places = (torch.arange(size) + (grown - size) // 2).double() * (kept - 1) / (grown - 1)
    left = places.floor().clamp(0, kept - 2)
    share = (places - left)[:, None]
    first = (left.long() + (size - kept) // 2)[:, None]
    matrix = torch.zeros(size, size).double()
    return matrix.scatter_add_(1, first, 1 - share).scatter_add_(1, first + 1, share)


def _pick(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The pixels of every image at these positions, ``(n, h, w)`` after broadcasting; the border repeats outside."""
    n, channels, h, w = x.shape
    flat = rows.clamp(0, h - 1) * w + columns.clamp(0, w - 1)
    return x.flatten(2).gather(2, flat.flatten(1)[:, None].expand(n, channels, -1)).view_as(x)


def _each_channel(x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
    return f(x.flatten(0, 1)[:, None]).view_as(x)
