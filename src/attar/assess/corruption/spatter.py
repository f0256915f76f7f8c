"""Spatter: drops of water or mud on the lens."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from attar.assess.corruption.blur import enlargement, smooth
from attar.assess.corruption.dice import Dice
from attar.assess.corruption.weather import colour

FAR = 20  #: distance in pixels from the rim of a drop at which its shading ends


def spatter(
    x: Tensor, dice: Dice, mean: float, std: float, sigma: float, least: float, strength: float, mud: bool
) -> Tensor:
    """Drops where a smooth random field is high; on images above 32 pixels the field is enlarged.

    ``strength`` is how much light water adds, or how soft the rim of mud is.
    """
    scale = enlargement(x)
    h, w = (round(side / scale) for side in x.shape[2:])
    wet = smooth(mean + std * dice.normal(1, h, w), sigma)
    wet = torch.where(wet < least, 0, wet).clamp(0, 1)
    cover = _mud((wet > least).to(x), strength) if mud else strength * _water(wet)
    if cover.shape[2:] != x.shape[2:]:
        cover = F.interpolate(cover, x.shape[2:], mode="bilinear", align_corners=False)
    if mud:
        return x * (1 - cover) + cover * colour(x, 63 / 255, 42 / 255, 20 / 255)
    return x + cover * colour(x, 175 / 255, 238 / 255, 238 / 255)  # pale turquoise


def _mud(drops: Tensor, sigma: float) -> Tensor:
    soft = smooth(drops, sigma)
    return torch.where(soft < 0.8, 0, soft)


def _water(wet: Tensor) -> Tensor:
    """Drops shaded as if lit from one side, at most 1.

    The steps and the 8-bit arithmetic are the published ones, but the rims are those of the drops, not Canny's edges.
    """
    dry = (wet == 0).to(wet)
    rim = (dry == 0) & (F.max_pool2d(dry, 3, 1, 1) > 0)
    height = _equalised(_mean(_distance(rim)).floor())
    lit = height.new_tensor([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])[None, None]
    height = F.conv2d(F.pad(height, [1] * 4, "reflect"), lit).clamp(0, 255)
    shade = (255 * wet).floor() * _mean(height).round()
    return shade / shade.amax((2, 3), keepdim=True).clamp_min(1)


def _distance(rim: Tensor) -> Tensor:
    """Euclidean distance of every pixel to the next rim, at most ``FAR``: one axis after the other."""
    squared = torch.where(rim, 0.0, float(FAR**2))
    steps = torch.arange(-FAR, FAR + 1, device=rim.device).square()
    for _ in range(2):
        windows = F.pad(squared, (FAR, FAR), value=FAR**2).unfold(3, len(steps), 1)
        squared = (windows + steps).amin(4).transpose(2, 3)
    return squared.clamp_max(FAR**2).sqrt()


def _equalised(x: Tensor) -> Tensor:
    """Histogram equalisation of whole numbers 0..FAR to 0..255."""
    level = x.flatten(1).long()
    counts = torch.zeros(len(x), FAR + 1, dtype=x.dtype, device=x.device).scatter_add_(
        1, level, torch.ones_like(x).flatten(1)
    )
    below = counts.cumsum(1)
    first = below.gather(1, level.amin(1, keepdim=True))
    table = 255 * (below - first).clamp_min(0) / (level.shape[1] - first).clamp_min(1)
    return table.round().gather(1, level).view_as(x)


def _mean(x: Tensor) -> Tensor:
    return F.avg_pool2d(F.pad(x, [1] * 4, "reflect"), 3, 1)
